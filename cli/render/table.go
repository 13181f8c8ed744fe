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
	lines := make([][]string, 0, len(rows)+1)
	if len(header) > 0 {
		lines = append(lines, header)
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
	widths := columnWidths(lines)
	var b strings.Builder
	for _, line := range lines {
		for i, cell := range line {
			b.WriteString(cell)
			if i < len(line)-1 {
				b.WriteString(strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell)))
				b.WriteString(columnGap)
			}
		}
		b.WriteByte('\n')
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func columnWidths(lines [][]string) []int {
	var widths []int
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
