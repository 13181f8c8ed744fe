package render

import (
	"io"
	"strings"
	"unicode/utf8"
)

// columnGap separates columns, as wide as kubectl's and docker's.
const columnGap = "   "

// Table writes rows under a header in aligned columns, without trailing spaces. An
// empty cell is shown as "-"; cells are cleaned. An empty header is left out.
func Table(w io.Writer, header []string, rows [][]string) error {
	return NewRows(w, header).Write(rows)
}

// Rows is a table that is written some rows at a time, for what is too much to hold.
// Columns get wider where a later row needs it.
type Rows struct {
	w      io.Writer
	header []string
	widths []int
}

// NewRows makes a table with a header, which is written with the first rows.
func NewRows(w io.Writer, header []string) *Rows { return &Rows{w: w, header: header} }

// Write writes rows.
func (r *Rows) Write(rows [][]string) error {
	lines := make([][]string, 0, len(rows)+1)
	if len(r.header) > 0 {
		lines = append(lines, r.header)
		r.header = nil
	}
	for _, row := range rows {
		cells := make([]string, len(row))
		for i, cell := range row {
			if cells[i] = Clean(cell); cell == "" {
				cells[i] = "-"
			}
		}
		lines = append(lines, cells)
	}
	r.widths = columnWidths(r.widths, lines)
	var b strings.Builder
	for _, line := range lines {
		for i, cell := range line {
			b.WriteString(cell)
			if i < len(line)-1 {
				b.WriteString(strings.Repeat(" ", r.widths[i]-utf8.RuneCountInString(cell)))
				b.WriteString(columnGap)
			}
		}
		b.WriteByte('\n')
	}
	_, err := io.WriteString(r.w, b.String())
	return err
}

func columnWidths(widths []int, lines [][]string) []int {
	for _, line := range lines {
		for i, cell := range line {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	return widths
}
