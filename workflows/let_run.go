package workflows

import (
	"go.temporal.io/sdk/workflow"

	"burrow.dev/burrow/activities"
	"burrow.dev/burrow/activities/domain"
	"burrow.dev/burrow/activities/network"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/manifest"
)

// start starts the server's guest with its CPUs paused.
func (p *provision) start(ctx workflow.Context, in domain.StartIn) error {
	_, err := call[domain.StartOut](ctx, p.operation, onHost(p.host, driverTimeout), activities.DomainStart, in)
	return err
}

// letRun puts the ports of a started guest on the wire; only then does it run. One that has
// ended since its start (its QEMU was killed, or libvirtd in the middle of it) is started again.
func (p *provision) letRun(ctx workflow.Context, in domain.StartIn) error {
	for starts := 1; ; starts++ {
		off, err := p.wireAndResume(ctx, in.Ports)
		if err != nil || !off {
			return err
		}
		if starts == startsMost {
			return errs.NewOperator(p.server.Ref(), "let it run",
				errs.Reason("its guest was started %d times, and went off each time before it was on the wire", starts),
				"look into /var/log/libvirt/qemu/"+p.server.Name+".log on host "+p.host)
		}
		if err := pause(ctx, starts-1); err != nil {
			return err
		}
		if err := p.start(ctx, in); err != nil {
			return err
		}
	}
}

// wireAndResume tells whether the guest was found off.
func (p *provision) wireAndResume(ctx workflow.Context, ports []manifest.Port) (off bool, err error) {
	at := onHost(p.host, driverTimeout)
	if off, err = p.wirePorts(ctx, at, ports); off || err != nil {
		return off, err
	}
	out, err := call[domain.ResumeOut](ctx, p.operation, at, activities.DomainResume, domain.ResumeIn{Server: p.server})
	return out.Off, err
}

// wirePorts puts ports on the wire, unless the guest is off.
func (p *provision) wirePorts(ctx workflow.Context, at target, ports []manifest.Port) (off bool, err error) {
	out, err := call[network.WireOut](ctx, p.operation, at, activities.NetworkWire, network.WireIn{Server: p.server, Ports: ports})
	return out.Off, err
}

// pause waits longer each time, as between the attempts of an activity.
func pause(ctx workflow.Context, times int) error {
	wait := retryFirst
	for range times {
		wait = min(2*wait, retryMost)
	}
	return workflow.Sleep(ctx, wait)
}
