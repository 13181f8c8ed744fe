package blob

import (
	"encoding/hex"
	"strings"

	"burrow.dev/burrow/internal/errs"
)

const (
	digestPrefix = "sha256:"
	bundlePrefix = BundleFolder
	bundleSuffix = ".tar.zst"
	logPrefix    = "logs/"
	logSuffix    = ".log"

	sha256HexLength = 64
)

// BundleFolder is what the keys of all bundles begin with.
const BundleFolder = "bundles/"

// BundleKey gives the key of the bundle with a digest, "sha256:<64 lower-case hex digits>".
// Anything else is a Permanent error.
func BundleKey(digest string) (string, error) {
	sum, ok := strings.CutPrefix(digest, digestPrefix)
	if !ok || !isSHA256Hex(sum) {
		return "", errs.NewPermanent("bundle", "read its digest",
			errs.Reason("%w: %q is not sha256:<64 hex digits>", errs.ErrInvalid, digest), "pass the digest that packing the bundle gave")
	}
	return bundlePrefix + sum + bundleSuffix, nil
}

// LogKey gives the key of a run's log.
func LogKey(serverUID, runID string) string {
	return LogFolder(serverUID) + runID + logSuffix
}

// LogFolder is what the keys of a server's logs begin with.
func LogFolder(serverUID string) string { return logPrefix + serverUID + "/" }

// contentDigest gives the hex SHA-256 that a key promises for its content; ok is
// false for keys that promise nothing.
func contentDigest(key string) (sum string, ok bool) {
	rest, found := strings.CutPrefix(key, bundlePrefix)
	if !found {
		return "", false
	}
	sum, found = strings.CutSuffix(rest, bundleSuffix)
	return sum, found && isSHA256Hex(sum)
}

func isSHA256Hex(s string) bool {
	if len(s) != sha256HexLength || strings.ToLower(s) != s {
		return false
	}
	_, err := hex.DecodeString(s)
	return err == nil
}

// CheckKey refuses keys that would leave the store's folder or name something that
// the store makes itself.
func CheckKey(key string) error {
	bad := key == "" || strings.HasPrefix(key, "/") || strings.HasSuffix(key, "/") || strings.HasSuffix(key, temporarySuffix)
	for part := range strings.SplitSeq(key, "/") {
		bad = bad || part == "" || part == "." || part == ".."
	}
	for _, r := range key {
		bad = bad || r < ' ' || r == 0x7f || r == '\\'
	}
	if bad {
		return errs.NewPermanent("blob "+quote(key), "read its key", errs.ErrInvalid, "use a key like logs/<server uid>/<run id>.log")
	}
	if strings.HasPrefix(key, bundlePrefix) {
		if _, ok := contentDigest(key); !ok {
			return errs.NewPermanent("blob "+quote(key), "read its key",
				errs.Reason("%w: no digest in the key of a bundle", errs.ErrInvalid), "make bundle keys with BundleKey")
		}
	}
	return nil
}
