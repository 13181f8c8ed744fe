package backup

import (
	"context"
	"errors"
	"fmt"
	"io"

	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/internal/etcdstate"
)

// mostTransaction is the size in bytes of what one transaction writes; etcd refuses
// requests above 1.5 MiB.
const mostTransaction = 1 << 20

// World is where a backup goes. It has been taken for this restore, and nobody else uses it.
type World struct {
	Records WorldRecords
	Blobs   WorldBlobs
	// TempDir has room for the records.
	TempDir string
}

// WorldRecords are etcd's keys; *etcdstate.Restore is one.
type WorldRecords interface {
	Note(k etcdstate.Kept)
	Put(ctx context.Context, keys []etcdstate.Kept) error
	Finish(ctx context.Context) error
}

// WorldBlobs take bundles and logs; *blob.Store is one.
type WorldBlobs interface {
	Put(ctx context.Context, key string, r io.Reader) error
}

// ExtractHistory gives Temporal's database of a file that Verify has read. The file has one.
func ExtractHistory(ctx context.Context, r io.Reader, take func(schema []byte, database io.Reader) error) error {
	var schema []byte
	_, err := read(ctx, r, visitor{
		schema: func(text []byte) error { schema = text; return nil },
		database: func(_ int64, r io.Reader) error {
			if err := take(schema, r); err != nil {
				return err
			}
			return errTaken // the rest is of no interest
		},
	})
	if errors.Is(err, errTaken) {
		return nil
	}
	return err
}

var errTaken = errors.New("taken")

// Restore brings back the blobs and records that Verify has found in the file, which r gives
// from its beginning again. The world is given free with the last step; before that it counts as interrupted.
func Restore(ctx context.Context, r io.Reader, verified Contents, world World) error {
	records, err := newSpool(world.TempDir)
	if err != nil {
		return err
	}
	defer records.close()
	v := visitor{
		blob: func(key string, _ int64, r io.Reader) error { return world.Blobs.Put(ctx, key, r) },
		record: func(l Line) error {
			world.Records.Note(l.kept())
			return records.add(l.kept())
		},
	}
	end, err := read(ctx, r, v)
	if err != nil {
		return err
	}
	if end.Sums != verified.Sums {
		return errs.NewPermanent("backup", "read again", errs.Reason("%w: the file is another one than before", errs.ErrConflict), "run the restore again")
	}
	err = records.transactions(etcdstate.MaxOps, mostTransaction, func(keys []etcdstate.Kept) error { return world.Records.Put(ctx, keys) })
	if err != nil {
		return fmt.Errorf("restore records: %w", err)
	}
	return world.Records.Finish(ctx)
}
