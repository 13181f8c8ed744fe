package ovsx

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// row is one OVSDB row, its columns by name, each as OVSDB's JSON has it (RFC 7047, 5.1).
type row map[string]json.RawMessage

// parseTables reads what `ovs-vsctl --format=json` prints: one JSON table a line.
func parseTables(out []byte) ([][]row, error) {
	var tables [][]row
	for _, line := range bytes.Split(bytes.TrimSpace(out), []byte("\n")) {
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		rows, err := parseTable(line)
		if err != nil {
			return nil, err
		}
		tables = append(tables, rows)
	}
	return tables, nil
}

func parseTable(line []byte) ([]row, error) {
	var table struct {
		Headings []string            `json:"headings"`
		Data     [][]json.RawMessage `json:"data"`
	}
	if err := json.Unmarshal(line, &table); err != nil {
		return nil, fmt.Errorf("read ovs-vsctl's table: %w", err)
	}
	rows := make([]row, 0, len(table.Data))
	for _, cells := range table.Data {
		if len(cells) != len(table.Headings) {
			return nil, fmt.Errorf("read ovs-vsctl's table: %d cells under %d headings", len(cells), len(table.Headings))
		}
		r := make(row, len(cells))
		for i, cell := range cells {
			r[table.Headings[i]] = cell
		}
		rows = append(rows, r)
	}
	return rows, nil
}

// text gives a string column; an empty set gives "".
func (r row) text(column string) string {
	if values := r.set(column); len(values) > 0 {
		return atom(values[0])
	}
	return ""
}

// number gives an integer column; an empty set, or no number, gives 0.
func (r row) number(column string) int {
	n, err := strconv.Atoi(r.text(column))
	if err != nil {
		return 0
	}
	return n
}

// numbers gives a column that is a set of integers.
func (r row) numbers(column string) []int {
	var all []int
	for _, value := range r.set(column) {
		if n, err := strconv.Atoi(atom(value)); err == nil {
			all = append(all, n)
		}
	}
	return all
}

// set gives the elements of a column: ["set",[…]], or the one atom it is.
func (r row) set(column string) []json.RawMessage {
	cell := r[column]
	var tagged []json.RawMessage
	if json.Unmarshal(cell, &tagged) != nil {
		if len(cell) == 0 {
			return nil
		}
		return []json.RawMessage{cell}
	}
	if len(tagged) != 2 {
		return nil
	}
	if atom(tagged[0]) != "set" {
		return []json.RawMessage{tagged[1]} // ["uuid", "…"]
	}
	var values []json.RawMessage
	if json.Unmarshal(tagged[1], &values) != nil {
		return nil
	}
	return values
}

// mapping gives a map column: ["map",[[key,value]…]].
func (r row) mapping(column string) map[string]string {
	all := map[string]string{}
	var tagged []json.RawMessage
	if json.Unmarshal(r[column], &tagged) != nil || len(tagged) != 2 {
		return all
	}
	var pairs [][2]json.RawMessage
	if json.Unmarshal(tagged[1], &pairs) != nil {
		return all
	}
	for _, pair := range pairs {
		all[atom(pair[0])] = atom(pair[1])
	}
	return all
}

// atom gives a JSON string's text, or any other atom as it is written.
func atom(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	return strings.TrimSpace(string(raw))
}
