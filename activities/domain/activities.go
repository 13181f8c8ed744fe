package domain

import (
	"context"
	"encoding/xml"
	"errors"
	"io"
	"log/slog"
	"os"

	"libvirt.org/go/libvirtxml"

	"burrow.dev/burrow/activities"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/internal/ovsx"
	"burrow.dev/burrow/manifest"
)

// Libvirt is the part of the domain driver that is used. A domain that is not there is
// errs.ErrNotFound everywhere; any other error says nothing about the guest.
type Libvirt interface {
	DomainUUID(ctx context.Context, name string) (string, error)
	DomainState(ctx context.Context, uuid string) (state, reason string, err error)
	Metadata(ctx context.Context, uuid, uri string) (string, error)
	DomainXML(ctx context.Context, uuid string) (*libvirtxml.Domain, error)
	AttachDisk(ctx context.Context, uuid string, disk *libvirtxml.DomainDisk) error
	DetachDisk(ctx context.Context, uuid string, disk *libvirtxml.DomainDisk) error
	AttachInterface(ctx context.Context, uuid string, nic *libvirtxml.DomainInterface) error
	DetachInterface(ctx context.Context, uuid string, nic *libvirtxml.DomainInterface) error
	ChangeMedium(ctx context.Context, uuid string, drive *libvirtxml.DomainDisk) error
	SetCPUs(ctx context.Context, uuid string, count int) error
	DiskSize(ctx context.Context, uuid, target string) (uint64, error)
	GrowDisk(ctx context.Context, uuid, target string, bytes uint64) error
	Volume(ctx context.Context, pool, name string) (*libvirtxml.StorageVolume, error)
	ResizeVolume(ctx context.Context, pool, name string, bytes uint64) error
	DefineDomain(ctx context.Context, def *libvirtxml.Domain) error
	StartPaused(ctx context.Context, uuid string) error
	Resume(ctx context.Context, uuid string) error
	Shutdown(ctx context.Context, uuid string) error
	Destroy(ctx context.Context, uuid string) error
	Undefine(ctx context.Context, uuid string) error
	Console(ctx context.Context, uuid string) (io.ReadWriteCloser, error)
}

// Switch tells of this host's Open vSwitch bridges and ports; errs.ErrNotFound when there
// is none of that name.
type Switch interface {
	Bridge(ctx context.Context, name string) (ovsx.Bridge, error)
	Port(ctx context.Context, name string) (ovsx.Port, error)
}

// Config is what the activities need.
type Config struct {
	Libvirt Libvirt
	Switch  Switch
	// Accelerator is KVM, or anything else for TCG (internal/accel finds out).
	Accelerator string
	// ConsoleDir takes the logs of serial consoles; made when it is not there.
	ConsoleDir string
	Log        *slog.Logger
}

// Activities runs domains on this host.
type Activities struct{ cfg Config }

// New makes the activities.
func New(cfg Config) *Activities {
	if cfg.Log == nil {
		cfg.Log = slog.Default()
	}
	return &Activities{cfg: cfg}
}

// Start makes sure that the server's domain stands and is active, paused if it was not
// active before.
func (a *Activities) Start(ctx context.Context, in StartIn) (StartOut, error) {
	out := StartOut{UUID: manifest.DomainUUID(in.Server.UID)}
	if err := checkShape(in); err != nil {
		return out, err
	}
	state, err := a.own(ctx, in.Server, "start domain")
	switch {
	case errors.Is(err, errs.ErrNotFound):
		if err := a.checkName(ctx, in.Server); err != nil {
			return out, err
		}
	case err != nil:
		return out, err
	case active(state):
		out.State = state
		return out, nil
	case state != stateOff && state != stateCrashed:
		return out, errs.NewTransient(in.Server.Ref(), "start domain", errs.Reason("%w: it is just now %s", errs.ErrBusy, state))
	}
	if err := a.define(ctx, in); err != nil {
		return out, err
	}
	if err := a.cfg.Libvirt.StartPaused(ctx, out.UUID); err != nil {
		return out, about(in.Server, "start domain", err)
	}
	if out.State, _, err = a.cfg.Libvirt.DomainState(ctx, out.UUID); err != nil {
		return out, about(in.Server, "look at domain", err)
	}
	if !active(out.State) {
		return out, errs.NewTransient(in.Server.Ref(), "start domain", errs.Reason("it is %s after its start: see virsh domblkerror and /var/log/libvirt/qemu/%s.log", out.State, in.Server.Name))
	}
	return out, nil
}

// define checks what the domain stands on and defines it.
func (a *Activities) define(ctx context.Context, in StartIn) error {
	if err := checkFiles(in); err != nil {
		return err
	}
	userspace, err := a.checkBridges(ctx, in)
	if err != nil {
		return err
	}
	if err := a.checkPorts(ctx, in); err != nil {
		return err
	}
	if err := os.MkdirAll(a.cfg.ConsoleDir, consoleDirMode); err != nil {
		return errs.NewTransient(in.Server.Ref(), "make console folder", err)
	}
	def, err := definition(in, environment{a.cfg.Accelerator, a.cfg.ConsoleDir, userspace})
	if err != nil {
		return errs.NewPermanent(in.Server.Ref(), "describe domain", err, "")
	}
	if err := a.cfg.Libvirt.DefineDomain(ctx, def); err != nil {
		return about(in.Server, "define domain", err)
	}
	return nil
}

// Redefine makes the definition of the server's domain what its next start would make it;
// a guest that runs stays as it is. No domain is success.
func (a *Activities) Redefine(ctx context.Context, in StartIn) (activities.Nothing, error) {
	if err := checkShape(in); err != nil {
		return activities.Nothing{}, err
	}
	if _, err := a.own(ctx, in.Server, "redefine domain"); err != nil {
		if errors.Is(err, errs.ErrNotFound) {
			err = nil
		}
		return activities.Nothing{}, err
	}
	return activities.Nothing{}, a.define(ctx, in)
}

// Resume lets the server's CPUs run.
func (a *Activities) Resume(ctx context.Context, in ResumeIn) (ResumeOut, error) {
	id := manifest.DomainUUID(in.Server.UID)
	state, err := a.own(ctx, in.Server, "resume domain")
	switch {
	case errors.Is(err, errs.ErrNotFound), err == nil && (state == stateOff || state == stateCrashed):
		return ResumeOut{Off: true}, nil
	case err != nil:
		return ResumeOut{}, about(in.Server, "resume domain", err)
	case state == stateRunning, state == stateBlocked:
		return ResumeOut{}, nil
	case state != statePaused:
		return ResumeOut{}, errs.NewTransient(in.Server.Ref(), "resume domain", errs.Reason("it is %s", state))
	}
	if err := a.cfg.Libvirt.Resume(ctx, id); err != nil {
		return ResumeOut{}, about(in.Server, "resume domain", err)
	}
	return ResumeOut{}, nil
}

// State gives the domain's state and reason in libvirt's words; errs.ErrNotFound when the
// server has no domain here.
func (a *Activities) State(ctx context.Context, uid string) (state, reason string, err error) {
	return a.cfg.Libvirt.DomainState(ctx, manifest.DomainUUID(uid))
}

// Console opens the server's serial console; errs.ErrBusy when somebody else has it.
func (a *Activities) Console(ctx context.Context, uid string) (io.ReadWriteCloser, error) {
	return a.cfg.Libvirt.Console(ctx, manifest.DomainUUID(uid))
}

// own gives the state of the server's domain: errs.ErrNotFound when there is none,
// errs.ErrNotManaged, refusing the action, when one has its UUID and not its mark.
func (a *Activities) own(ctx context.Context, s activities.Server, action string) (state string, err error) {
	id := manifest.DomainUUID(s.UID)
	state, reason, err := a.cfg.Libvirt.DomainState(ctx, id)
	if err != nil {
		return "", about(s, "look at domain", err)
	}
	if state == statePaused && reason == reasonStarting {
		state = stateStarting
	}
	uid, err := a.markOf(ctx, id)
	if errors.Is(err, errs.ErrNotFound) { // it has no mark, or another attempt has just removed it
		_, _, err = a.cfg.Libvirt.DomainState(ctx, id)
	}
	if err != nil {
		return "", about(s, "look at domain", err)
	}
	if uid != s.UID {
		return "", foreign(s, action, id)
	}
	return state, nil
}

// markOf reads the uid in a domain's mark; errs.ErrNotFound when it has none.
func (a *Activities) markOf(ctx context.Context, id string) (uid string, err error) {
	text, err := a.cfg.Libvirt.Metadata(ctx, id, Namespace)
	if err != nil {
		return "", err
	}
	var m struct {
		UID string `xml:"uid,attr"`
	}
	if err := xml.Unmarshal([]byte(text), &m); err != nil {
		return "", errs.ErrNotFound
	}
	return m.UID, nil
}

// checkName refuses a name that another domain has: libvirt's names are unique.
func (a *Activities) checkName(ctx context.Context, s activities.Server) error {
	id, err := a.cfg.Libvirt.DomainUUID(ctx, s.Name)
	switch {
	case errors.Is(err, errs.ErrNotFound):
		return nil
	case err != nil:
		return about(s, "look for domain "+s.Name, err)
	}
	switch uid, err := a.markOf(ctx, id); {
	case errors.Is(err, errs.ErrNotFound):
		return foreign(s, "define domain", id)
	case err != nil:
		return about(s, "look at domain "+s.Name, err)
	case uid == s.UID: // an earlier attempt, given up and still at work, has just defined it
		return nil
	default:
		return errs.NewPermanent(s.Ref(), "define domain", errs.Reason("%w: a domain named %s is there already, of burrow's server with uid %s", errs.ErrExists, s.Name, uid),
			"`burrow drift` shows what is left of it; save what you need, then burrow sweep --remove "+uid)
	}
}

// foreign refuses an action on a domain that is not the server's.
func foreign(s activities.Server, action, id string) error {
	return errs.NewPermanent(s.Ref(), action, errs.Reason("%w: a domain named %s is there already (UUID %s)", errs.ErrNotManaged, s.Name, id),
		"give the server another name, or remove that domain: virsh undefine "+id)
}

// about names the server in a driver's error and keeps its class.
func about(s activities.Server, action string, err error) error {
	return errs.New(errs.ClassOf(err), s.Ref(), action, err, "")
}
