package gitrepo

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"burrow.dev/burrow/internal/errs"
)

// bounds of a repository, so that it fills nobody's disk.
type bounds struct {
	pack    int64 // bytes that are transferred: one commit, compressed
	bytes   int64 // of the commit's files
	entries int
}

// ordinary is wider than the bounds of a bundle: a repository has more than one playbook.
var ordinary = bounds{pack: 512 << 20, bytes: 512 << 20, entries: 100_000}

// lookEvery is how often a growing pack is looked at.
const lookEvery = 100 * time.Millisecond

var errTooLarge = errors.New("too large")

// download runs a git command that fetches, and ends it when too much comes.
func (g *git) download(ctx context.Context, args ...string) error {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		ticker := time.NewTicker(lookEvery)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
				if g.packed() > g.most.pack {
					cancel()
				}
			}
		}
	}()
	err := g.run(ctx, args...)
	cancel()
	<-done
	if g.packed() > g.most.pack {
		return errs.Reason("%w: it sends more than %d MiB for one commit", errTooLarge, g.most.pack>>20)
	}
	return err
}

// packed is how much is on disk of what is fetched. Files come and go meanwhile.
func (g *git) packed() int64 {
	var total int64
	entries, _ := os.ReadDir(filepath.Join(g.dir, ".git", "objects", "pack"))
	for _, e := range entries {
		if info, err := e.Info(); err == nil {
			total += info.Size()
		}
	}
	return total
}

// measure refuses a commit with too many files, or too large ones, before any is written: a
// few kilobytes can stand for billions of files.
func (g *git) measure(ctx context.Context, commit string) error {
	l := &listing{most: g.most}
	err := g.to(l).run(ctx, "ls-tree", "-r", "--long", "-z", commit)
	if l.tooMuch {
		return errs.Reason("%w: the commit has more than %d files or %d MiB", errTooLarge, g.most.entries, g.most.bytes>>20)
	}
	return err
}

// listing adds up what ls-tree prints: "<mode> <type> <id> <size>\t<path>\0".
type listing struct {
	most    bounds
	rest    []byte // of an entry that is not whole yet
	entries int
	bytes   int64
	tooMuch bool
}

// Write ends what prints when it is too much.
func (l *listing) Write(p []byte) (int, error) {
	l.rest = append(l.rest, p...)
	for {
		entry, rest, whole := bytes.Cut(l.rest, []byte{0})
		if !whole {
			return len(p), nil
		}
		l.rest = rest
		l.entries++
		head, _, _ := bytes.Cut(entry, []byte{'\t'})
		if fields := bytes.Fields(head); len(fields) == 4 {
			size, _ := strconv.ParseInt(string(fields[3]), 10, 64) // "-" of a submodule, which is empty
			l.bytes += size
		}
		if l.entries > l.most.entries || l.bytes > l.most.bytes {
			l.tooMuch = true
			return 0, errTooLarge
		}
	}
}
