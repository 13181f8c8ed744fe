package worker

import (
	"context"
	"io"
	"os"
	"strings"

	"burrow.dev/burrow/activities"
	"burrow.dev/burrow/activities/domain"
)

// consoleTail reads the last line that a guest's serial console printed.
type consoleTail struct{ dir string }

// tailMost is how much of a console's log is read for its last line.
const tailMost = 1024

// ConsoleTail implements guest.Console. A console that has printed nothing gives "".
func (c consoleTail) ConsoleTail(_ context.Context, server activities.Server) string {
	f, err := os.Open(domain.ConsoleLog(c.dir, server.UID))
	if err != nil {
		return ""
	}
	defer f.Close()
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return ""
	}
	tail, err := io.ReadAll(io.NewSectionReader(f, max(0, size-tailMost), tailMost))
	if err != nil {
		return ""
	}
	lines := strings.FieldsFunc(string(tail), func(r rune) bool { return r == '\n' || r == '\r' })
	if len(lines) == 0 {
		return ""
	}
	return lines[len(lines)-1]
}
