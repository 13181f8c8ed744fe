package libvirtx

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sync/semaphore"
	"libvirt.org/go/libvirt"
	"libvirt.org/go/libvirtxml"

	"burrow.dev/burrow/internal/errs"
)

// poolWidth is how many volumes of one pool are made or deleted at once; more only
// queue in the disk (pitfall 64). Building, refreshing and stopping a pool takes all
// of it, since libvirt refuses those while a volume is being made (pitfall 6).
const poolWidth = 8

// poolMode lets QEMU's user pass through to the files, and nobody list them.
const poolMode = "0711"

func poolObject(pool string) string { return "pool " + pool }

// enterPool takes width of the pool and gives the release. No name or no width is free.
func (c *Connection) enterPool(ctx context.Context, pool string, width int64) (func(), error) {
	if pool == "" || width == 0 {
		return func() {}, nil
	}
	c.mu.Lock()
	s := c.pools[pool]
	if s == nil {
		s = semaphore.NewWeighted(poolWidth)
		c.pools[pool] = s
	}
	c.mu.Unlock()
	if err := s.Acquire(ctx, width); err != nil {
		return nil, err
	}
	return func() { s.Release(width) }, nil
}

// withPool runs fn on the pool; it is freed afterwards.
func withPool[T any](ctx context.Context, c *Connection, cl call, pool string, fn func(*libvirt.StoragePool) (T, error)) (T, error) {
	cl.object = poolObject(pool)
	return do(ctx, c, cl, func(conn *libvirt.Connect) (T, error) {
		p, err := conn.LookupStoragePoolByName(pool)
		if err != nil {
			var zero T
			return zero, err
		}
		defer p.Free()
		return fn(p)
	})
}

// EnsurePool makes sure that a directory pool of that name stands on dir: defined,
// built, started, and started again by libvirt at boot. A pool of that name on another
// folder is somebody else's: ErrNotManaged, Permanent.
func (c *Connection) EnsurePool(ctx context.Context, name, dir string) error {
	dir = filepath.Clean(dir)
	cl := call{object: poolObject(name), action: "make", pool: name, width: poolWidth, limit: createTimeout}
	_, err := do(ctx, c, cl, func(conn *libvirt.Connect) (struct{}, error) {
		p, err := conn.LookupStoragePoolByName(name)
		if isCode(err, libvirt.ERR_NO_STORAGE_POOL) {
			p, err = definePool(conn, name, dir)
		}
		if err != nil {
			return struct{}{}, err
		}
		defer p.Free()
		return struct{}{}, startPool(p, name, dir)
	})
	return err
}

func definePool(conn *libvirt.Connect, name, dir string) (*libvirt.StoragePool, error) {
	def := libvirtxml.StoragePool{
		Type: "dir", Name: name,
		Target: &libvirtxml.StoragePoolTarget{
			Path: dir, Permissions: &libvirtxml.StoragePoolTargetPermissions{Mode: poolMode},
		},
	}
	doc, err := def.Marshal()
	if err != nil {
		return nil, err
	}
	return conn.StoragePoolDefineXML(doc, 0)
}

// startPool builds and starts what is not there yet; p's folder may have been removed
// under a pool that libvirt still believes active.
func startPool(p *libvirt.StoragePool, name, dir string) error {
	have, err := poolTarget(p)
	if err != nil {
		return err
	}
	if filepath.Clean(have) != dir {
		return errs.NewPermanent(poolObject(name), "make", errs.Reason("%w: it stands on %s, not on %s", errs.ErrNotManaged, have, dir),
			"name another pool in the worker's configuration, or undefine that one")
	}
	active, err := p.IsActive()
	if err != nil {
		return err
	}
	if _, err := os.Stat(dir); active && errors.Is(err, os.ErrNotExist) {
		if err := p.Destroy(); err != nil {
			return err
		}
		active = false
	}
	if !active {
		if err := p.Build(0); err != nil && !isCode(err, libvirt.ERR_STORAGE_POOL_BUILT) {
			return err
		}
		if err := p.Create(0); err != nil {
			return err
		}
	}
	return p.SetAutostart(true)
}

func poolTarget(p *libvirt.StoragePool) (string, error) {
	doc, err := p.GetXMLDesc(0)
	if err != nil {
		return "", err
	}
	var def libvirtxml.StoragePool
	if err := def.Unmarshal(doc); err != nil {
		return "", err
	}
	if def.Target == nil {
		return "", nil
	}
	return def.Target.Path, nil
}

// PoolDir gives the folder (or device folder) of a pool.
func (c *Connection) PoolDir(ctx context.Context, pool string) (string, error) {
	return withPool(ctx, c, call{action: "read target"}, pool, poolTarget)
}

// RefreshPool makes libvirt look at the pool's folder again; needed after files were
// put there past libvirt. It waits for volumes being made in this process.
func (c *Connection) RefreshPool(ctx context.Context, pool string) error {
	cl := call{action: "refresh", pool: pool, width: poolWidth, limit: createTimeout}
	_, err := withPool(ctx, c, cl, pool, func(p *libvirt.StoragePool) (struct{}, error) {
		return struct{}{}, p.Refresh(0)
	})
	return err
}
