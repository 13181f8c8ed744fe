package gateway

import "burrow.dev/burrow/internal/plaintext"

// maxRequester bounds the name of who asks, in bytes: it is kept beside what they did.
const maxRequester = 128

// requester is who asks, by the client's own word: for people to read, never for a
// decision. It gets into logs and onto terminals, so it is one line of plain text.
func requester(req interface{ GetBy() string }) string {
	return plaintext.Line(req.GetBy(), maxRequester)
}
