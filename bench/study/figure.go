package study

import (
	"bytes"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// Figure is one or more panels with one legend to the right of them.
type Figure struct {
	Title   string
	Columns int // of panels; 1 where 0
	Panels  []Panel
}

// Panel is one pair of axes.
type Panel struct {
	Title, X, Y string
	// LogX and LogY make logarithmic axes; y only where values span so much, else it
	// begins at 0.
	LogX, LogY bool
	// FromZero lets a linear y axis begin at 0.
	FromZero bool
	// Ticks are the values that the x axis names; nil: whatever suits.
	Ticks []float64
	Lines []Line
}

// Line is what a legend has an entry for.
type Line struct {
	Name   string
	Points []Point
	// Bare has no marks at its points, as suits where they are many.
	Bare bool
}

// Point is a value, and how far others seeds' are from it.
type Point struct{ X, Y, Low, High float64 }

const (
	panelWidth  = 3.4 * vg.Inch
	panelHeight = 2.6 * vg.Inch
	thumbWidth  = 24
	titleHeight = 0.3 * vg.Inch
	margin      = 0.12 * vg.Inch
)

// Sans-serif letters are what a page around the figure has.
func init() { plot.DefaultFont.Variant = "Sans" }

// SVG draws the figure.
func (f *Figure) SVG() ([]byte, error) {
	columns := max(f.Columns, 1)
	rows := (len(f.Panels) + columns - 1) / columns
	if rows == 0 {
		return nil, fmt.Errorf("figure %q has no panels", f.Title)
	}
	names := f.names()
	legendWidth := legendWidthOf(names)
	svg := vgsvg.NewWith(vgsvg.UseWH(vg.Length(columns)*panelWidth+legendWidth+margin, vg.Length(rows)*panelHeight+titleHeight))
	canvas := draw.New(svg)
	canvas.SetColor(paper)
	canvas.Fill(canvas.Rectangle.Path())
	f.drawTitle(canvas)
	panels := draw.Crop(canvas, margin, -legendWidth-margin, margin, -titleHeight)
	f.drawPanels(panels, rows, columns)
	if legendWidth > 0 {
		drawLegend(draw.Crop(canvas, canvas.Size().X-legendWidth, 0, margin, -titleHeight), names)
	}
	var b bytes.Buffer
	if _, err := svg.WriteTo(&b); err != nil {
		return nil, fmt.Errorf("draw %q: %w", f.Title, err)
	}
	return fontNames.ReplaceAll(b.Bytes(), []byte("font-family:Arial,Helvetica,'Liberation Sans',sans-serif;")), nil
}

// fontNames is what names a font that browsers rarely have; the widths of its
// letters are Arial's.
var fontNames = regexp.MustCompile(`font-family:[^;]*;font-variant:[^;]*;`)

// names are the figure's lines in the order in which they first occur.
func (f *Figure) names() []string {
	var names []string
	for _, p := range f.Panels {
		for _, l := range p.Lines {
			if !slices.Contains(names, l.Name) {
				names = append(names, l.Name)
			}
		}
	}
	return names
}

func (f *Figure) drawTitle(c draw.Canvas) {
	style := plot.New().Title.TextStyle
	style.Font.Size, style.Font.Weight = vg.Points(11), bold
	style.XAlign, style.YAlign = draw.XLeft, draw.YTop
	c.FillText(style, vg.Point{X: c.Min.X + margin, Y: c.Max.Y - vg.Points(5)}, f.Title)
}

func (f *Figure) drawPanels(c draw.Canvas, rows, columns int) {
	names := f.names()
	grid := make([][]*plot.Plot, rows)
	for i := range f.Panels {
		row := i / columns
		grid[row] = append(grid[row], f.Panels[i].plot(names))
	}
	for len(grid[rows-1]) < columns {
		grid[rows-1] = append(grid[rows-1], nil)
	}
	tiles := draw.Tiles{Rows: rows, Cols: columns, PadX: vg.Points(12), PadY: vg.Points(10)}
	canvases := plot.Align(grid, tiles, c)
	for i, row := range grid {
		for k, p := range row {
			if p != nil {
				p.Draw(canvases[i][k])
			}
		}
	}
}

// newLegend is empty.
func newLegend() plot.Legend {
	legend := plot.NewLegend()
	legend.Top, legend.Left = true, true
	legend.ThumbnailWidth = vg.Points(thumbWidth)
	legend.Padding = vg.Points(3)
	legend.TextStyle.Font.Size = vg.Points(9)
	return legend
}

// legendWidthOf leaves room for letters of another font; one line needs no legend.
func legendWidthOf(names []string) vg.Length {
	if len(names) < 2 {
		return 0
	}
	legend, widest := newLegend(), vg.Length(0)
	for _, name := range names {
		widest = max(widest, legend.TextStyle.Width(name))
	}
	return widest*1.2 + vg.Points(thumbWidth+12)
}

func drawLegend(c draw.Canvas, names []string) {
	legend := newLegend()
	for i, name := range names {
		line, err := plotter.NewLine(plotter.XYs{{X: 0, Y: 0}})
		if err != nil {
			continue // a single point is always fine
		}
		line.LineStyle = styleOf(name, i)
		legend.Add(name, line)
	}
	legend.Draw(c)
}

// plot is the panel in the house style; names give lines their styles.
func (p *Panel) plot(names []string) *plot.Plot {
	pl := plot.New()
	pl.Title.Text, pl.X.Label.Text, pl.Y.Label.Text = p.Title, p.X, p.Y
	pl.Title.TextStyle.Font.Size = vg.Points(10)
	pl.Title.Padding = vg.Points(4)
	for _, axis := range []*plot.Axis{&pl.X, &pl.Y} {
		axis.Label.TextStyle.Font.Size = vg.Points(9)
		axis.Tick.Label.Font.Size = vg.Points(8)
		axis.Padding = 0
	}
	grid := plotter.NewGrid()
	grid.Vertical.Color, grid.Horizontal.Color = gridColour, gridColour
	pl.Add(grid)
	for _, l := range p.Lines {
		p.addLine(pl, l, styleOf(l.Name, slices.Index(names, l.Name)))
	}
	p.scale(pl)
	return pl
}

// addLine draws from left to right, leaving out what is no figure.
func (p *Panel) addLine(pl *plot.Plot, l Line, style draw.LineStyle) {
	w := whiskers{}
	for _, point := range l.Points {
		if !isFigure(point.X) || !isFigure(point.Y) || p.LogY && point.Y <= 0 || p.LogX && point.X <= 0 {
			continue
		}
		w.XYs = append(w.XYs, plotter.XY{X: point.X, Y: point.Y})
		low, high := point.Y-point.Low, point.High-point.Y
		if !isFigure(low) || !isFigure(high) || p.LogY && point.Low <= 0 {
			low, high = 0, 0
		}
		w.YErrors = append(w.YErrors, struct{ Low, High float64 }{low, high})
	}
	if len(w.XYs) == 0 {
		return
	}
	line, err := plotter.NewLine(w.XYs)
	if err != nil {
		return // all values were looked at
	}
	line.LineStyle = style
	pl.Add(line)
	if l.Bare {
		return
	}
	if scatter, err := plotter.NewScatter(w.XYs); err == nil {
		scatter.GlyphStyle = draw.GlyphStyle{Color: style.Color, Radius: style.Width + vg.Points(0.6), Shape: draw.CircleGlyph{}}
		pl.Add(scatter)
	}
	if bars, err := plotter.NewYErrorBars(w); err == nil {
		bars.LineStyle = draw.LineStyle{Color: style.Color, Width: vg.Points(0.7)}
		bars.CapWidth = vg.Points(4)
		pl.Add(bars)
	}
}

// whiskers are points with what is below and above them.
type whiskers struct {
	plotter.XYs
	plotter.YErrors
}

// decades is how many times its least value a log axis must reach to be one.
const decades = 8

func (p *Panel) scale(pl *plot.Plot) {
	if pl.X.Min > pl.X.Max || math.IsInf(pl.X.Min, 0) { // nothing was drawn
		pl.X.Min, pl.X.Max, pl.Y.Min, pl.Y.Max = 1, 2, 1, 2
	}
	pl.X.Tick.Marker, pl.Y.Tick.Marker = plot.TickerFunc(evenTicks), plot.TickerFunc(evenTicks)
	if p.LogX {
		logarithmic(&pl.X)
	}
	if p.LogY && pl.Y.Max >= decades*pl.Y.Min {
		logarithmic(&pl.Y)
	} else {
		if p.FromZero || p.LogY {
			pl.Y.Min = 0
		}
		pl.Y.Max += (pl.Y.Max - pl.Y.Min) * 0.04
	}
	if p.Ticks != nil {
		pl.X.Tick.Marker = named(p.Ticks)
	}
}

// evenTicks names four to eight round values.
func evenTicks(low, high float64) []plot.Tick {
	if !(high > low) {
		return []plot.Tick{{Value: low, Label: strconv.FormatFloat(low, 'g', 4, 64)}}
	}
	step := math.Pow(10, math.Floor(math.Log10(high-low)))
	for _, share := range []float64{1, 0.5, 0.2} {
		if (high-low)/(step*share) >= 4 {
			step *= share
			break
		}
	}
	var ticks []plot.Tick
	for i := math.Ceil(low/step-rounding) + 0; i*step <= high*(1+rounding); i++ {
		ticks = append(ticks, plot.Tick{Value: i * step, Label: strconv.FormatFloat(i*step, 'g', 6, 64)})
	}
	return ticks
}

func logarithmic(a *plot.Axis) {
	a.Scale = plot.LogScale{}
	a.Tick.Marker = plot.TickerFunc(logTicks)
	if a.Min == a.Max {
		a.Min, a.Max = a.Min/2, a.Max*2
	}
}

// logTicks names 1, 2 and 5 of each decade, and only decades where there are
// many.
func logTicks(low, high float64) []plot.Tick {
	var ticks []plot.Tick
	first, last := math.Floor(math.Log10(low)), math.Ceil(math.Log10(high))
	for decade := first; decade <= last; decade++ {
		for digit := 1.0; digit < 10; digit++ {
			v := digit * math.Pow(10, decade)
			if v < low*(1-rounding) || v > high*(1+rounding) {
				continue
			}
			t := plot.Tick{Value: v}
			if digit == 1 || last-first <= 3 && (digit == 2 || digit == 5) {
				t.Label = strconv.FormatFloat(v, 'g', 6, 64)
			}
			ticks = append(ticks, t)
		}
	}
	return ticks
}

func named(values []float64) plot.ConstantTicks {
	ticks := make(plot.ConstantTicks, len(values))
	for i, v := range values {
		ticks[i] = plot.Tick{Value: v, Label: strconv.FormatFloat(v, 'g', 6, 64)}
	}
	return ticks
}
