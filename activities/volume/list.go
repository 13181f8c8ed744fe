package volume

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"

	"burrow.dev/burrow/internal/errs"
)

// Named is a volume whose name is as burrow's are. The name alone proves nothing: it has
// only the first digits of its owner's uid, and anybody may call a file so.
type Named struct {
	Volume string
	// Owner is the first 8 digits of the uid, OwnerName the server's or the Volume's name.
	Owner, OwnerName string
	// Resource: the storage of a Volume resource; otherwise a disk of a server.
	Resource bool
}

var (
	resourceName = regexp.MustCompile(`^vol-([a-z0-9][a-z0-9.-]*)-([0-9a-f]{8})\.(?:qcow2|raw)$`)
	diskName     = regexp.MustCompile(`^([a-z0-9][a-z0-9.-]*?)-([0-9a-f]{8})-(?:` + mainBoot + `|` + otherBoot + `|data-[a-z0-9][a-z0-9.-]*)\.(?:qcow2|raw)$`)
)

// ParseName reads a volume's name; ok false when it is not one of burrow's.
func ParseName(volume string) (n Named, ok bool) {
	if m := diskName.FindStringSubmatch(volume); m != nil {
		return Named{Volume: volume, OwnerName: m[1], Owner: m[2]}, true
	}
	if m := resourceName.FindStringSubmatch(volume); m != nil {
		return Named{Volume: volume, OwnerName: m[1], Owner: m[2], Resource: true}, true
	}
	return Named{}, false
}

// List gives the volumes in the pool that are burrow's: named so, and marked.
func (a *Activities) List(ctx context.Context) ([]Named, error) {
	all, err := a.named(ctx)
	if err != nil {
		return nil, err
	}
	var out []Named
	for _, n := range all {
		made, err := a.marks.has(n.Volume)
		if err != nil {
			return nil, err
		}
		if made {
			out = append(out, n)
		}
	}
	return out, nil
}

// named gives the volumes in the pool's folder that have such names, whoever's. The folder
// is read, not the pool: libvirt may not have seen a file yet.
func (a *Activities) named(ctx context.Context) ([]Named, error) {
	dir, err := a.cfg.Libvirt.PoolDir(ctx, a.cfg.Pool)
	if errors.Is(err, errs.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, errs.NewTransient("pool "+a.cfg.Pool, "list its folder", err)
	}
	var out []Named
	for _, e := range entries {
		if n, ok := ParseName(e.Name()); ok {
			out = append(out, n)
		}
	}
	return out, nil
}

// DeleteNamed deletes a volume that List gave; none is success.
func (a *Activities) DeleteNamed(ctx context.Context, n Named) error { return a.delete(ctx, n.Volume) }

// Path is where a volume's file is.
func (a *Activities) Path(ctx context.Context, n Named) (string, error) {
	dir, err := a.cfg.Libvirt.PoolDir(ctx, a.cfg.Pool)
	return filepath.Join(dir, n.Volume), err
}
