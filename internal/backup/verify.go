package backup

import (
	"context"
	"io"
	"maps"
	"slices"
	"strings"

	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/internal/etcdstate"
)

// Contents is what a whole and undamaged backup holds.
type Contents struct {
	Header Header
	End
	// Sealed are the ids of the master keys that its secrets are encrypted under, sorted.
	Sealed []string
	// Bytes that the database and blobs take on disk.
	Bytes int64
}

// Verify reads a backup from its beginning to its end and changes nothing.
func Verify(ctx context.Context, r io.Reader) (Contents, error) {
	var c Contents
	sealed := map[string]bool{}
	var err error
	c.End, err = read(ctx, r, visitor{
		header:   func(h Header) error { c.Header = h; return nil },
		database: func(size int64, _ io.Reader) error { c.Bytes += size; return nil },
		blob:     func(_ string, size int64, _ io.Reader) error { c.Bytes += size; return nil },
		record: func(l Line) error {
			id, ok, err := etcdstate.SealedUnder(l.Key, l.Value)
			if err != nil {
				return damaged("%s does not say under which master key", l.Key)
			}
			if ok {
				sealed[id] = true
			}
			return nil
		},
	})
	c.Sealed = slices.Sorted(maps.Keys(sealed))
	return c, err
}

// CheckMasterKeys refuses master keys (their ids, and where they were looked for) that lack
// one that secrets of the backup are encrypted under.
func (c Contents) CheckMasterKeys(ids []string, where string) error {
	for _, sealed := range c.Sealed {
		if slices.Contains(ids, sealed) {
			continue
		}
		have := "there is none at " + where
		if len(ids) > 0 {
			have = where + " has " + strings.Join(ids, ", ")
		}
		return errs.NewPermanent("backup", "restore secrets", errs.Reason("they are encrypted under master key %s; %s", sealed, have),
			"name a copy of the right one: --master-key FILE")
	}
	return nil
}
