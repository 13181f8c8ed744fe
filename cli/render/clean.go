package render

import "burrow.dev/burrow/internal/plaintext"

// maxCleanLine bounds one line of a view; a terminal shows less of it.
const maxCleanLine = 2000

// Clean makes text from elsewhere safe for one line of a terminal.
func Clean(s string) string { return plaintext.Line(s, maxCleanLine) }

// CleanLines does the same for text of several lines.
func CleanLines(s string) string { return plaintext.Lines(s) }
