package libvirtx

import (
	"context"
	"errors"

	"libvirt.org/go/libvirt"
	"libvirt.org/go/libvirtxml"

	"burrow.dev/burrow/internal/errs"
)

func volumeCall(pool, name, action string) call {
	return call{
		object: "volume " + name + " in pool " + pool, action: action,
		key: "volume/" + pool + "/" + name, pool: pool, width: 1, limit: createTimeout,
	}
}

// onPool runs fn under a volume's lock and within the pool's width.
func (c *Connection) onPool(ctx context.Context, cl call, fn func(*libvirt.Connect, *libvirt.StoragePool) error) error {
	_, err := do(ctx, c, cl, func(conn *libvirt.Connect) (struct{}, error) {
		p, err := conn.LookupStoragePoolByName(cl.pool)
		if err != nil {
			return struct{}{}, err
		}
		defer p.Free()
		return struct{}{}, fn(conn, p)
	})
	return err
}

// onVolume is onPool with the volume looked up by name (never by listing, pitfall 7).
func (c *Connection) onVolume(ctx context.Context, cl call, name string, fn func(*libvirt.Connect, *libvirt.StorageVol) error) error {
	return c.onPool(ctx, cl, func(conn *libvirt.Connect, p *libvirt.StoragePool) error {
		v, err := p.LookupStorageVolByName(name)
		if err != nil {
			return err
		}
		defer v.Free()
		return fn(conn, v)
	})
}

// Volume describes a volume; ErrNotFound when the pool knows none of that name.
// Capacity is in bytes.
func (c *Connection) Volume(ctx context.Context, pool, name string) (*libvirtxml.StorageVolume, error) {
	cl := volumeCall(pool, name, "look up")
	cl.limit, cl.width = lookTimeout, 0
	var def libvirtxml.StorageVolume
	err := c.onVolume(ctx, cl, name, func(_ *libvirt.Connect, v *libvirt.StorageVol) error {
		doc, err := v.GetXMLDesc(0)
		if err != nil {
			return err
		}
		return def.Unmarshal(doc)
	})
	if err != nil {
		return nil, err
	}
	return &def, nil
}

// CreateVolume makes a volume, over a backing store if def has one. ErrExists when the
// name is taken, also by a file that libvirt had not seen.
func (c *Connection) CreateVolume(ctx context.Context, pool string, def *libvirtxml.StorageVolume) error {
	return c.makeVolume(ctx, volumeCall(pool, def.Name, "create"), pool, def,
		func(_ *libvirt.Connect, p *libvirt.StoragePool, doc string) (*libvirt.StorageVol, error) {
			return p.StorageVolCreateXML(doc, 0)
		})
}

// CloneVolume makes a volume as a full copy of another one in the pool, converted to
// def's format. It may take minutes; while it does, the volume's lock is held.
func (c *Connection) CloneVolume(ctx context.Context, pool string, def *libvirtxml.StorageVolume, from string) error {
	cl := volumeCall(pool, def.Name, "copy "+from)
	cl.limit = copyTimeout
	return c.makeVolume(ctx, cl, pool, def,
		func(_ *libvirt.Connect, p *libvirt.StoragePool, doc string) (*libvirt.StorageVol, error) {
			source, err := p.LookupStorageVolByName(from)
			if err != nil {
				return nil, err
			}
			defer source.Free()
			return p.StorageVolCreateXMLFrom(doc, source, 0)
		})
}

type volumeMaker func(*libvirt.Connect, *libvirt.StoragePool, string) (*libvirt.StorageVol, error)

func (c *Connection) makeVolume(ctx context.Context, cl call, pool string, def *libvirtxml.StorageVolume, create volumeMaker) error {
	doc, err := def.Marshal()
	if err != nil {
		return errs.NewPermanent(cl.object, cl.action, err, "")
	}
	err = c.onPool(ctx, cl, func(conn *libvirt.Connect, p *libvirt.StoragePool) error {
		v, err := create(conn, p, doc)
		if err != nil {
			return err
		}
		return v.Free()
	})
	if !errors.Is(err, errs.ErrExists) {
		return err
	}
	// A file that libvirt does not know (libvirtd was killed while it made it) could
	// neither be found nor deleted by name: let libvirt see it.
	return errors.Join(err, c.RefreshPool(ctx, pool))
}

// ResizeVolume grows a volume to a size in bytes. A smaller size is refused by libvirt.
func (c *Connection) ResizeVolume(ctx context.Context, pool, name string, bytes uint64) error {
	return c.onVolume(ctx, volumeCall(pool, name, "grow"), name, func(_ *libvirt.Connect, v *libvirt.StorageVol) error {
		return v.Resize(bytes, 0)
	})
}

// DeleteVolume deletes a volume; ErrNotFound when there is none.
func (c *Connection) DeleteVolume(ctx context.Context, pool, name string) error {
	return c.onVolume(ctx, volumeCall(pool, name, "delete"), name, func(_ *libvirt.Connect, v *libvirt.StorageVol) error {
		return v.Delete(libvirt.STORAGE_VOL_DELETE_NORMAL)
	})
}
