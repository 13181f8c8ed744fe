package render

import (
	"encoding/json"
	"io"
	"reflect"

	"burrow.dev/burrow/internal/plaintext"
)

// NewJSON writes one JSON object per line whenever an operation changes.
func NewJSON(w io.Writer) Renderer {
	return &jsonLines{enc: json.NewEncoder(plaintext.JSONWriter(w)), last: map[string]Operation{}}
}

type jsonLines struct {
	enc  *json.Encoder
	last map[string]Operation
	err  error
}

// Update implements Renderer.
func (j *jsonLines) Update(ops []Operation) {
	for _, op := range ops {
		if old, ok := j.last[op.ID]; ok && reflect.DeepEqual(old, op) {
			continue
		}
		j.last[op.ID] = snapshot(op)
		if err := j.enc.Encode(op); err != nil && j.err == nil {
			j.err = err
		}
	}
}

// Close implements Renderer.
func (j *jsonLines) Close() error { return j.err }

// snapshot copies what the caller may change before the next update.
func snapshot(op Operation) Operation {
	op.Steps = append([]Step(nil), op.Steps...)
	return op
}
