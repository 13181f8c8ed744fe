package libvirtx

import (
	"context"
	"errors"

	"libvirt.org/go/libvirt"
	"libvirt.org/go/libvirtxml"

	"burrow.dev/burrow/internal/errs"
)

// undefineAll removes everything that libvirt keeps beside a domain's definition; any
// of it left in place makes undefine fail (pitfall 13).
const undefineAll = libvirt.DOMAIN_UNDEFINE_MANAGED_SAVE | libvirt.DOMAIN_UNDEFINE_SNAPSHOTS_METADATA |
	libvirt.DOMAIN_UNDEFINE_CHECKPOINTS_METADATA | libvirt.DOMAIN_UNDEFINE_NVRAM | libvirt.DOMAIN_UNDEFINE_TPM

func domainCall(uuid, action string) call {
	return call{object: "domain " + uuid, action: action, key: "domain/" + uuid}
}

// onDomain runs fn on a domain looked up by UUID; it is freed afterwards.
func onDomain[T any](ctx context.Context, c *Connection, cl call, uuid string, fn func(*libvirt.Domain) (T, error)) (T, error) {
	return do(ctx, c, cl, func(conn *libvirt.Connect) (T, error) {
		d, err := conn.LookupDomainByUUIDString(uuid)
		if err != nil {
			var zero T
			return zero, err
		}
		defer d.Free()
		return fn(d)
	})
}

func (c *Connection) actOnDomain(ctx context.Context, cl call, uuid string, fn func(*libvirt.Domain) error) error {
	_, err := onDomain(ctx, c, cl, uuid, func(d *libvirt.Domain) (struct{}, error) { return struct{}{}, fn(d) })
	return err
}

// DomainUUID looks a domain up by name; ErrNotFound when there is none.
func (c *Connection) DomainUUID(ctx context.Context, name string) (string, error) {
	return do(ctx, c, call{object: "domain " + name, action: "look up"}, func(conn *libvirt.Connect) (string, error) {
		d, err := conn.LookupDomainByName(name)
		if err != nil {
			return "", err
		}
		defer d.Free()
		return d.GetUUIDString()
	})
}

// RunningDisks gives the files that a domain runs from; none when it is off or there is none.
func (c *Connection) RunningDisks(ctx context.Context, uuid string) ([]string, error) {
	def, err := c.DomainXML(ctx, uuid)
	if errors.Is(err, errs.ErrNotFound) {
		return nil, nil
	}
	if err != nil || def.ID == nil { // only an active domain has one
		return nil, err
	}
	var files []string
	if def.Devices != nil {
		for _, disk := range def.Devices.Disks {
			if disk.Source != nil && disk.Source.File != nil {
				files = append(files, disk.Source.File.File)
			}
		}
	}
	return files, nil
}

// DomainXML describes a domain as it is now; ErrNotFound when there is none.
func (c *Connection) DomainXML(ctx context.Context, uuid string) (*libvirtxml.Domain, error) {
	doc, err := onDomain(ctx, c, domainCall(uuid, "describe"), uuid, func(d *libvirt.Domain) (string, error) {
		return d.GetXMLDesc(0)
	})
	if err != nil {
		return nil, err
	}
	var def libvirtxml.Domain
	if err := def.Unmarshal(doc); err != nil {
		return nil, errs.NewTransient("domain "+uuid, "read description", err)
	}
	return &def, nil
}

// DomainState gives libvirt's state and reason in virsh's words: "running", "paused"
// (reason "user", "starting-up", "ioerror"…), "shutoff", "shutdown", "crashed",
// "pmsuspended", "blocked". ErrNotFound when there is no such domain; any other error
// says nothing about the guest (pitfall 17).
func (c *Connection) DomainState(ctx context.Context, uuid string) (state, reason string, err error) {
	type pair struct {
		state  libvirt.DomainState
		reason int
	}
	s, err := onDomain(ctx, c, domainCall(uuid, "read state"), uuid, func(d *libvirt.Domain) (pair, error) {
		state, reason, err := d.GetState()
		return pair{state, reason}, err
	})
	if err != nil {
		return "", "", err
	}
	return stateName(s.state), reasonName(s.state, s.reason), nil
}

// Metadata gives the metadata element of a namespace; ErrNotFound when the domain has
// none, or is not there.
func (c *Connection) Metadata(ctx context.Context, uuid, uri string) (string, error) {
	return onDomain(ctx, c, domainCall(uuid, "read metadata"), uuid, func(d *libvirt.Domain) (string, error) {
		return d.GetMetadata(libvirt.DOMAIN_METADATA_ELEMENT, uri, libvirt.DOMAIN_AFFECT_CURRENT)
	})
}

// DefineDomain makes or replaces the definition that carries def.UUID.
func (c *Connection) DefineDomain(ctx context.Context, def *libvirtxml.Domain) error {
	doc, err := def.Marshal()
	if err != nil {
		return errs.NewPermanent("domain "+def.Name, "define", err, "")
	}
	cl := domainCall(def.UUID, "define")
	cl.object, cl.limit = "domain "+def.Name, defineTimeout
	_, err = do(ctx, c, cl, func(conn *libvirt.Connect) (struct{}, error) {
		d, err := conn.DomainDefineXML(doc)
		if err != nil {
			return struct{}{}, err
		}
		return struct{}{}, d.Free()
	})
	return err
}

// StartPaused starts a domain with its CPUs stopped: it has its devices and its ports
// and sends nothing. It outlives this connection.
func (c *Connection) StartPaused(ctx context.Context, uuid string) error {
	cl := domainCall(uuid, "start")
	cl.limit = defineTimeout
	return c.actOnDomain(ctx, cl, uuid, func(d *libvirt.Domain) error {
		return d.CreateWithFlags(libvirt.DOMAIN_START_PAUSED)
	})
}

// Resume lets the CPUs of a paused domain run.
func (c *Connection) Resume(ctx context.Context, uuid string) error {
	return c.actOnDomain(ctx, domainCall(uuid, "resume"), uuid, (*libvirt.Domain).Resume)
}

// Shutdown presses the power button (ACPI). Whether the guest obeys shows in its state.
func (c *Connection) Shutdown(ctx context.Context, uuid string) error {
	return c.actOnDomain(ctx, domainCall(uuid, "shut down"), uuid, func(d *libvirt.Domain) error {
		return d.ShutdownFlags(libvirt.DOMAIN_SHUTDOWN_ACPI_POWER_BTN)
	})
}

// Destroy pulls the plug. A domain that is off already is success; ErrNotFound when
// there is none.
func (c *Connection) Destroy(ctx context.Context, uuid string) error {
	cl := domainCall(uuid, "destroy")
	cl.limit = createTimeout
	return c.actOnDomain(ctx, cl, uuid, func(d *libvirt.Domain) error {
		active, err := d.IsActive()
		if err != nil || !active {
			return err
		}
		return d.Destroy()
	})
}

// Undefine removes a domain's definition and all that libvirt keeps beside it.
func (c *Connection) Undefine(ctx context.Context, uuid string) error {
	return c.actOnDomain(ctx, domainCall(uuid, "undefine"), uuid, func(d *libvirt.Domain) error {
		err := d.UndefineFlags(undefineAll)
		if isCode(err, libvirt.ERR_INVALID_ARG) {
			// libvirt before 8.9 does not know the TPM flag, and had no TPM state to remove.
			err = d.UndefineFlags(undefineAll &^ libvirt.DOMAIN_UNDEFINE_TPM)
		}
		return err
	})
}

func stateName(s libvirt.DomainState) string {
	switch s {
	case libvirt.DOMAIN_RUNNING:
		return "running"
	case libvirt.DOMAIN_BLOCKED:
		return "blocked"
	case libvirt.DOMAIN_PAUSED:
		return "paused"
	case libvirt.DOMAIN_SHUTDOWN:
		return "shutdown"
	case libvirt.DOMAIN_SHUTOFF:
		return "shutoff"
	case libvirt.DOMAIN_CRASHED:
		return "crashed"
	case libvirt.DOMAIN_PMSUSPENDED:
		return "pmsuspended"
	}
	return "nostate"
}

// reasonName names the reasons that burrow acts on or shows; others are "".
func reasonName(s libvirt.DomainState, reason int) string {
	switch s {
	case libvirt.DOMAIN_PAUSED:
		switch libvirt.DomainPausedReason(reason) {
		case libvirt.DOMAIN_PAUSED_USER:
			return "user"
		case libvirt.DOMAIN_PAUSED_IOERROR:
			return "ioerror"
		case libvirt.DOMAIN_PAUSED_STARTING_UP:
			return "starting-up"
		case libvirt.DOMAIN_PAUSED_CRASHED:
			return "crashed"
		case libvirt.DOMAIN_PAUSED_WATCHDOG:
			return "watchdog"
		}
	case libvirt.DOMAIN_SHUTOFF:
		switch libvirt.DomainShutoffReason(reason) {
		case libvirt.DOMAIN_SHUTOFF_SHUTDOWN:
			return "shutdown"
		case libvirt.DOMAIN_SHUTOFF_DESTROYED:
			return "destroyed"
		case libvirt.DOMAIN_SHUTOFF_CRASHED:
			return "crashed"
		case libvirt.DOMAIN_SHUTOFF_FAILED:
			return "failed"
		}
	}
	return ""
}
