package imagestore

import (
	"bufio"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"path"
	"regexp"
	"strings"

	"burrow.dev/burrow/internal/errs"
)

// maxChecksumFile bounds a checksum file: the longest known lists a few hundred names.
const maxChecksumFile = 1 << 20

// Checksum is a digest that a file must have: SHA-256 or SHA-512 by its length.
type Checksum string

// ParseChecksum reads hex digits, with or without "sha256:" or "sha512:" in front.
func ParseChecksum(text string) (Checksum, error) {
	text = strings.ToLower(strings.TrimSpace(text))
	kind, digits, found := strings.Cut(text, ":")
	if !found {
		kind, digits = "", text
	}
	b, err := hex.DecodeString(digits)
	switch {
	case err != nil:
	case len(b) == sha256.Size && (kind == "" || kind == "sha256"), len(b) == sha512.Size && (kind == "" || kind == "sha512"):
		return Checksum(digits), nil
	}
	return "", fmt.Errorf("%w: %.80q is no SHA-256 or SHA-512 checksum", errs.ErrInvalid, text)
}

// hasher gives the hash that c is of.
func (c Checksum) hasher() hash.Hash {
	if len(c) == 2*sha512.Size {
		return sha512.New()
	}
	return sha256.New()
}

// matches compares c with a finished hash.
func (c Checksum) matches(h hash.Hash) bool { return hex.EncodeToString(h.Sum(nil)) == string(c) }

// Lines of checksum files: coreutils ("<hex>  name", "<hex> *name") and BSD
// ("SHA256 (name) = <hex>"); a file with nothing but one digest is good for any name.
var (
	coreutilsLine = regexp.MustCompile(`^([0-9a-fA-F]{64,128})(?:\s+\*?(\S.*))?$`)
	bsdLine       = regexp.MustCompile(`^SHA(?:256|512)\s*\((.+)\)\s*=\s*([0-9a-fA-F]{64,128})$`)
)

// FindChecksum looks a file's name up in a checksum file. Of several digests the longest
// wins. ErrNotFound when the file does not list the name.
func FindChecksum(r io.Reader, name string) (Checksum, error) {
	var found, bare Checksum
	lines := bufio.NewScanner(io.LimitReader(r, maxChecksumFile))
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		digits, of := "", ""
		if m := bsdLine.FindStringSubmatch(line); m != nil {
			of, digits = m[1], m[2]
		} else if m := coreutilsLine.FindStringSubmatch(line); m != nil {
			digits, of = m[1], strings.TrimSpace(m[2])
		}
		sum, err := ParseChecksum(digits)
		switch {
		case err != nil:
		case of == "":
			bare = sum
		case path.Base(of) == name && len(sum) > len(found):
			found = sum
		}
	}
	if err := lines.Err(); err != nil {
		return "", fmt.Errorf("%w: checksum file: %w", errs.ErrInvalid, err)
	}
	if found == "" {
		found = bare
	}
	if found == "" {
		return "", fmt.Errorf("%w: no checksum of %s in the checksum file", errs.ErrNotFound, name)
	}
	return found, nil
}
