package plaintext

import (
	"fmt"
	"io"
	"unicode/utf16"
	"unicode/utf8"
)

// EscapeJSON gives JSON text with everything in its strings that a terminal would not show
// where it stands written as \u and four digits: the document says the same, and is safe to print.
// Encoders leave C1 controls and changes of direction as they are.
func EscapeJSON(text []byte) []byte {
	out := make([]byte, 0, len(text))
	for len(text) > 0 {
		r, n := utf8.DecodeRune(text)
		switch {
		case r < utf8.RuneSelf && r != 0x7f, visible(r): // ASCII controls outside of strings are the layout
			out = append(out, text[:n]...)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			out = fmt.Appendf(out, `\u%04x\u%04x`, high, low)
		default:
			out = fmt.Appendf(out, `\u%04x`, r)
		}
		text = text[n:]
	}
	return out
}

// JSONWriter writes JSON to w as EscapeJSON gives it. Each write holds whole characters,
// as those of an encoder do.
func JSONWriter(w io.Writer) io.Writer { return jsonWriter{w} }

type jsonWriter struct{ w io.Writer }

func (j jsonWriter) Write(text []byte) (int, error) {
	if _, err := j.w.Write(EscapeJSON(text)); err != nil {
		return 0, err
	}
	return len(text), nil
}
