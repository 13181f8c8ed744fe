package domain

import (
	"context"
	"time"

	"libvirt.org/go/libvirtxml"

	"burrow.dev/burrow/activities"
)

const (
	// letGo is how long a guest may take to let a device go; it has to answer the request.
	letGo = 20 * time.Second
	// askEvery is how often it is asked again: a guest that is still booting does not hear it.
	askEvery = 5 * time.Second
)

// device is one that a running guest still has.
type device struct {
	name   string
	detach func() error
}

// leftover is what a guest did not give back.
type leftover struct {
	names   []string
	refused error // what libvirt said when it asked the guest
}

// askBack asks a running guest for devices and waits until it has let them go; still gives
// those that it has. A guest that is off has none.
func (a *Activities) askBack(ctx context.Context, server activities.Server, action string, still func(*libvirtxml.Domain) []device) (leftover, error) {
	end, cancel := context.WithTimeout(ctx, letGo)
	defer cancel()
	ask, look := time.NewTicker(askEvery), time.NewTicker(lookEvery)
	defer ask.Stop()
	defer look.Stop()
	asked := false
	var refused error
	for {
		def, err := a.running(ctx, server, action)
		if err != nil || def == nil {
			return leftover{}, err
		}
		var left leftover
		for _, d := range still(def) {
			left.names = append(left.names, d.name)
			if !asked {
				// That it is being unplugged already, or did not answer in time, shows above.
				refused = d.detach()
			}
		}
		left.refused = refused
		if len(left.names) == 0 {
			return leftover{}, nil
		}
		asked = true
		select {
		case <-end.Done():
			return left, ctx.Err()
		case <-ask.C:
			asked = false
		case <-look.C:
		}
	}
}
