package libvirtx

import (
	"context"

	"libvirt.org/go/libvirt"
	"libvirt.org/go/libvirtxml"

	"burrow.dev/burrow/internal/errs"
)

// Devices are plugged into the running guest and into its definition alike, so that a
// start by hand has them too. That of a domain that is off is changed by defining it again.
const liveAndDefined = libvirt.DOMAIN_DEVICE_MODIFY_LIVE | libvirt.DOMAIN_DEVICE_MODIFY_CONFIG

// AttachDisk plugs a disk into a running domain.
func (c *Connection) AttachDisk(ctx context.Context, uuid string, disk *libvirtxml.DomainDisk) error {
	return c.attach(ctx, uuid, "attach disk "+disk.Target.Dev, disk.Marshal)
}

// DetachDisk asks a running guest to let a disk go. Whether it has shows in DomainXML.
func (c *Connection) DetachDisk(ctx context.Context, uuid string, disk *libvirtxml.DomainDisk) error {
	return c.detach(ctx, uuid, "detach disk "+disk.Target.Dev, disk.Marshal)
}

func (c *Connection) attach(ctx context.Context, uuid, action string, marshal func() (string, error)) error {
	return c.device(ctx, uuid, action, marshal, func(d *libvirt.Domain, doc string) error {
		return d.AttachDeviceFlags(doc, liveAndDefined)
	})
}

func (c *Connection) detach(ctx context.Context, uuid, action string, marshal func() (string, error)) error {
	return c.device(ctx, uuid, action, marshal, func(d *libvirt.Domain, doc string) error {
		return d.DetachDeviceFlags(doc, liveAndDefined)
	})
}

func (c *Connection) device(ctx context.Context, uuid, action string, marshal func() (string, error), act func(*libvirt.Domain, string) error) error {
	cl := domainCall(uuid, action)
	doc, err := marshal()
	if err != nil {
		return errs.NewPermanent(cl.object, action, err, "")
	}
	return c.actOnDomain(ctx, cl, uuid, func(d *libvirt.Domain) error { return act(d, doc) })
}

// GrowDisk tells a running domain's disk (its target, "vda") its new size in bytes; QEMU
// grows the file and tells the guest.
func (c *Connection) GrowDisk(ctx context.Context, uuid, target string, bytes uint64) error {
	cl := domainCall(uuid, "grow disk "+target)
	cl.limit = createTimeout
	return c.actOnDomain(ctx, cl, uuid, func(d *libvirt.Domain) error {
		return d.BlockResize(target, bytes, libvirt.DOMAIN_BLOCK_RESIZE_BYTES)
	})
}

// DiskSize is the virtual size in bytes of a disk of a domain, as its QEMU has it.
func (c *Connection) DiskSize(ctx context.Context, uuid, target string) (uint64, error) {
	return onDomain(ctx, c, domainCall(uuid, "look at disk "+target), uuid, func(d *libvirt.Domain) (uint64, error) {
		info, err := d.GetBlockInfo(target, 0)
		if err != nil {
			return 0, err
		}
		return info.Capacity, nil
	})
}
