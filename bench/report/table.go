package report

import (
	"fmt"
	"strings"
)

// Table is a Markdown table.
type Table struct {
	Header []string
	Rows   [][]string
}

// Add appends a row; cells are written with %v.
func (t *Table) Add(cells ...any) {
	row := make([]string, len(cells))
	for i, c := range cells {
		row[i] = fmt.Sprint(c)
	}
	t.Rows = append(t.Rows, row)
}

// String is the table as Markdown, its columns aligned.
func (t *Table) String() string {
	width := make([]int, len(t.Header))
	for _, row := range append([][]string{t.Header}, t.Rows...) {
		for i, cell := range row {
			width[i] = max(width[i], len([]rune(cell)))
		}
	}
	var b strings.Builder
	line(&b, t.Header, width)
	for _, w := range width {
		b.WriteString("|" + strings.Repeat("-", w+2))
	}
	b.WriteString("|\n")
	for _, row := range t.Rows {
		line(&b, row, width)
	}
	return b.String()
}

func line(b *strings.Builder, cells []string, width []int) {
	for i, w := range width {
		cell := ""
		if i < len(cells) {
			cell = cells[i]
		}
		b.WriteString("| " + cell + strings.Repeat(" ", w-len([]rune(cell))+1))
	}
	b.WriteString("|\n")
}
