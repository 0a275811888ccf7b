package study

// distribution asks for runs that "opponents" asks for too, as far as policies
// compete there.
func distribution() Experiment {
	e := Experiment{
		Name:     "distribution",
		Question: "How are the times to the first token distributed where the fleet copes?",
	}
	for _, p := range plotted {
		for _, policy := range compared {
			e.Lesser = append(e.Lesser, p.copes(policy))
		}
	}
	e.Show = func(page *Page, r *Results) {
		f := Figure{Title: "Share of requests whose first token has come", Columns: len(plotted)}
		for _, p := range plotted {
			panel := Panel{Title: p.String(), X: "time to the first token, s", Y: "share of requests", LogX: true}
			for _, policy := range compared {
				panel.Lines = append(panel.Lines, Line{Name: policy, Bare: true, Points: cumulative(r.Of(p.copes(policy)))})
			}
			f.Panels = append(f.Panels, panel)
		}
		page.Say("%.0f %% of the rate that saturates the default policy; the first seed.", 100*copes)
		page.Show("distribution", f)
	}
	return e
}

// cumulative is the distribution of the first seed's times.
func cumulative(s Sample) []Point {
	if len(s) == 0 {
		return nil
	}
	var points []Point
	for i, q := range s[0].Quantiles {
		y := float64(i) / quantileSteps
		points = append(points, Point{X: q, Y: y, Low: y, High: y})
	}
	return points
}
