package diskfile

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
)

// chunk bounds how long a cancelled copy or digest goes on, and how often progress is told.
const chunk = 4 << 20

// Digest is the SHA-256 of a file in hex, and its length. progress, when not nil, is told
// the bytes read so far.
func Digest(ctx context.Context, path string, progress func(done int64)) (sum string, size int64, err error) {
	f, err := os.Open(path)
	if err != nil {
		return "", 0, err
	}
	defer f.Close()
	h := sha256.New()
	size, err = Copy(ctx, h, f, progress)
	if err != nil {
		return "", 0, err
	}
	return hex.EncodeToString(h.Sum(nil)), size, nil
}

// Copy copies until src ends, in pieces, so that it ends soon after ctx and progress is
// told the bytes copied so far. Between two files the kernel does the copying.
func Copy(ctx context.Context, dst io.Writer, src io.Reader, progress func(done int64)) (int64, error) {
	var done int64
	for {
		if ctx.Err() != nil {
			return done, context.Cause(ctx)
		}
		n, err := io.CopyN(dst, src, chunk)
		done += n
		if progress != nil {
			progress(done)
		}
		switch {
		case errors.Is(err, io.EOF):
			return done, nil
		case err != nil:
			return done, err
		}
	}
}
