package faults

import (
	"bufio"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
)

// result is an outcome in a file: the matrix takes an hour, which may be run in parts.
type result struct {
	Cell  string `json:"cell"`
	Error string `json:"error,omitempty"`
}

// remember appends outcomes to a file; "" remembers nothing.
func remember(path string, all []outcome) error {
	if path == "" {
		return nil
	}
	for _, o := range all {
		r := result{Cell: o.cell.String()}
		if o.err != nil {
			r.Error = o.err.Error()
		}
		line, err := json.Marshal(r)
		if err != nil {
			return err
		}
		if err := appendTo(path, string(line)+"\n"); err != nil {
			return err
		}
	}
	return nil
}

// recall gives how the cells of earlier parts of a run went, and those that are still to
// be run: never, or not well the last time.
func recall(path string, cells []cell) (earlier []outcome, open []cell, err error) {
	last := map[string]result{}
	if path != "" {
		file, err := os.Open(path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, nil, err
		}
		defer file.Close()
		for lines := bufio.NewScanner(file); lines.Scan(); {
			var r result
			if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
				return nil, nil, err
			}
			last[r.Cell] = r
		}
	}
	for _, c := range cells {
		r, played := last[c.String()]
		o := outcome{cell: c}
		if r.Error != "" {
			o.err = errors.New(r.Error)
		}
		if played {
			earlier = append(earlier, o)
		}
		if o.err != nil || !played {
			open = append(open, c)
		}
	}
	return earlier, open, nil
}
