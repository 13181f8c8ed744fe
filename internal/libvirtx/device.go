package libvirtx

import (
	"context"

	"libvirt.org/go/libvirt"
	"libvirt.org/go/libvirtxml"

	"burrow.dev/burrow/internal/errs"
)

// Disks are plugged into the running guest and into its definition alike, so that a
// start by hand has them too. That of a domain that is off is changed by defining it again.
const liveAndDefined = libvirt.DOMAIN_DEVICE_MODIFY_LIVE | libvirt.DOMAIN_DEVICE_MODIFY_CONFIG

// AttachDisk plugs a disk into a running domain.
func (c *Connection) AttachDisk(ctx context.Context, uuid string, disk *libvirtxml.DomainDisk) error {
	return c.attach(ctx, uuid, "attach disk "+disk.Target.Dev, disk.Marshal, liveAndDefined)
}

// DetachDisk asks a running guest to let a disk go. Whether it has shows in DomainXML.
func (c *Connection) DetachDisk(ctx context.Context, uuid string, disk *libvirtxml.DomainDisk) error {
	return c.detach(ctx, uuid, "detach disk "+disk.Target.Dev, disk.Marshal, liveAndDefined)
}

// AttachInterface plugs a NIC into a running domain; the definition stays as it is.
func (c *Connection) AttachInterface(ctx context.Context, uuid string, nic *libvirtxml.DomainInterface) error {
	return c.attach(ctx, uuid, "attach NIC "+nic.MAC.Address, nic.Marshal, libvirt.DOMAIN_DEVICE_MODIFY_LIVE)
}

// DetachInterface asks a running guest to let a NIC go; the definition stays as it is.
// Whether it has shows in DomainXML.
func (c *Connection) DetachInterface(ctx context.Context, uuid string, nic *libvirtxml.DomainInterface) error {
	return c.detach(ctx, uuid, "detach NIC "+nic.MAC.Address, nic.Marshal, libvirt.DOMAIN_DEVICE_MODIFY_LIVE)
}

// ChangeMedium puts another medium into a running domain's drive, also one that the guest
// has locked; the definition stays as it is.
func (c *Connection) ChangeMedium(ctx context.Context, uuid string, drive *libvirtxml.DomainDisk) error {
	return c.device(ctx, uuid, "change medium of "+drive.Target.Dev, drive.Marshal, func(d *libvirt.Domain, doc string) error {
		return d.UpdateDeviceFlags(doc, libvirt.DOMAIN_DEVICE_MODIFY_LIVE|libvirt.DOMAIN_DEVICE_MODIFY_FORCE)
	})
}

// SetCPUs gives a running domain so many processors, at most as many as it was started
// for. A guest that does not give one back in time is an error; it may do so later.
func (c *Connection) SetCPUs(ctx context.Context, uuid string, count int) error {
	cl := domainCall(uuid, "set processors")
	cl.limit = createTimeout
	return c.actOnDomain(ctx, cl, uuid, func(d *libvirt.Domain) error {
		return d.SetVcpusFlags(uint(count), libvirt.DOMAIN_VCPU_LIVE)
	})
}

func (c *Connection) attach(ctx context.Context, uuid, action string, marshal func() (string, error), where libvirt.DomainDeviceModifyFlags) error {
	return c.device(ctx, uuid, action, marshal, func(d *libvirt.Domain, doc string) error {
		return d.AttachDeviceFlags(doc, where)
	})
}

func (c *Connection) detach(ctx context.Context, uuid, action string, marshal func() (string, error), where libvirt.DomainDeviceModifyFlags) error {
	return c.device(ctx, uuid, action, marshal, func(d *libvirt.Domain, doc string) error {
		return d.DetachDeviceFlags(doc, where)
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
