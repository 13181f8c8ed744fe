package domain

import (
	"context"
	"log/slog"

	"libvirt.org/go/libvirtxml"

	"burrow.dev/burrow/manifest"
)

const (
	// cpusAtLeast and cpusTimes are how many processors a domain has sockets for: those it
	// is declared with, and as many again, or a few. A socket costs the guest some kilobytes.
	cpusAtLeast = 4
	cpusTimes   = 2

	kibPerMiB = 1024
)

// sockets is the most processors that a guest may have before its next start.
func sockets(cpu int) int { return max(cpusAtLeast, cpusTimes*cpu) }

// Fit gives the server's running guest its processors, as far as it takes them at once, and
// tells what it has then. That it does not take them is no error.
func (a *Activities) Fit(ctx context.Context, in FitIn) (FitOut, error) {
	const action = "fit processors"
	def, err := a.running(ctx, in.Server, action)
	if err != nil || def == nil {
		return FitOut{CPU: in.CPU, Memory: in.Memory}, err
	}
	have := had(def)
	if have.CPU == in.CPU || uint(in.CPU) > def.VCPU.Value {
		return have, nil
	}
	refused := a.cfg.Libvirt.SetCPUs(ctx, manifest.DomainUUID(in.Server.UID), in.CPU)
	if refused != nil {
		a.cfg.Log.InfoContext(ctx, "the guest's processors stay until its restart", slog.String("server", in.Server.Name), slog.Any("error", refused))
	}
	if def, err = a.running(ctx, in.Server, action); err != nil || def == nil {
		return FitOut{CPU: in.CPU, Memory: in.Memory}, err
	}
	return had(def), nil
}

// had is what a running guest has. libvirt describes it in KiB.
func had(def *libvirtxml.Domain) FitOut {
	out := FitOut{Running: true}
	if def.VCPU != nil {
		out.CPU = int(def.VCPU.Value)
		if def.VCPU.Current > 0 {
			out.CPU = int(def.VCPU.Current)
		}
	}
	if def.Memory != nil {
		out.Memory = int(def.Memory.Value) / kibPerMiB
	}
	return out
}
