package study

import (
	"fmt"
	"strings"

	"kvca/bench/report"
)

// Page is where an experiment shows its results.
type Page struct {
	text     strings.Builder
	figures  []namedFigure
	verdicts []Verdict
}

type namedFigure struct {
	name   string
	figure Figure
}

// Say writes a paragraph.
func (p *Page) Say(format string, args ...any) {
	fmt.Fprintf(&p.text, format+"\n\n", args...)
}

// Head begins a part of the page.
func (p *Page) Head(title string) { p.Say("### %s", title) }

// Table writes a table.
func (p *Page) Table(t *report.Table) { p.Say("%s", strings.TrimSuffix(t.String(), "\n")) }

// Show writes a figure, which becomes a file of that name.
func (p *Page) Show(name string, f Figure) {
	p.figures = append(p.figures, namedFigure{name, f})
	p.Say("![%s](%s.svg)", f.Title, name)
}

// Judge keeps verdicts, for the page's end and for the report's beginning.
func (p *Page) Judge(v ...Verdict) { p.verdicts = append(p.verdicts, v...) }

// sentences are the verdicts as a list.
func sentences(verdicts []Verdict) string {
	var b strings.Builder
	for _, v := range verdicts {
		fmt.Fprintf(&b, "* %s: %s. Promised: %s.\n", v.Judgment, v.Found, v.Promise)
	}
	return b.String()
}
