package place

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"burrow.dev/burrow/activities"
	"burrow.dev/burrow/internal/capacity"
	"burrow.dev/burrow/internal/errs"
)

// Store is what the activities need of etcd (internal/etcdstate).
type Store interface {
	Reserve(ctx context.Context, uid string, r capacity.Reservation, choose func([]capacity.Host) (string, error)) (string, error)
	Resize(ctx context.Context, uid string, r capacity.Reservation, admit func(capacity.Host) error) error
	Unreserve(ctx context.Context, uid string) error
}

// Activities are the place.* activities.
type Activities struct{ store Store }

// New builds the activities.
func New(store Store) *Activities { return &Activities{store: store} }

// Place chooses a host with room and reserves it. The same uid gets the same host again.
func (a *Activities) Place(ctx context.Context, in In) (Out, error) {
	r := capacity.Reservation{Owner: in.Owner, CPU: in.CPU, Memory: in.Memory, DiskGiB: in.DiskGiB}
	host, err := a.store.Reserve(ctx, in.UID, r, func(hosts []capacity.Host) (string, error) {
		return choose(in, r, hosts)
	})
	return Out{Host: host}, err
}

// Resize makes a server's reservation another size where it is. Giving back is never refused.
func (a *Activities) Resize(ctx context.Context, in ResizeIn) (activities.Nothing, error) {
	r := capacity.Reservation{Owner: in.Owner, CPU: in.CPU, Memory: in.Memory, DiskGiB: in.DiskGiB}
	return activities.Nothing{}, a.store.Resize(ctx, in.UID, r, func(h capacity.Host) error {
		old := h.Reservations[in.UID]
		more := capacity.Reservation{CPU: r.CPU - old.CPU, Memory: r.Memory - old.Memory, DiskGiB: map[string]int{}}
		for pool, gib := range r.DiskGiB {
			more.DiskGiB[pool] = gib - old.DiskGiB[pool]
		}
		if lacks := h.Lacks(more); len(lacks) > 0 {
			return errs.NewOperator(in.Owner, "reserve more of host "+h.Name,
				fmt.Errorf("%w: %s", errs.ErrNoSpace, strings.Join(lacks, ", ")), "make room, or ask for less")
		}
		return nil
	})
}

// Release drops a reservation, also one whose host the caller never heard; none is success.
func (a *Activities) Release(ctx context.Context, in ReleaseIn) (activities.Nothing, error) {
	return activities.Nothing{}, a.store.Unreserve(ctx, in.UID)
}

// choose gives the living host with room that has the most memory to spare.
func choose(in In, r capacity.Reservation, hosts []capacity.Host) (string, error) {
	wanted, err := wantedHost(in)
	if err != nil {
		return "", err
	}
	var best capacity.Host
	var full, unfit []string
	known, alive := false, false
	for _, h := range hosts {
		if wanted != "" && h.Name != wanted {
			continue
		}
		if h.Lost && wanted != "" {
			return "", errs.NewPermanent(in.Owner, "choose a host", fmt.Errorf("host %s was declared lost", wanted),
				"bring it back, or take out what binds it to that host: nodeName, volumes that are there")
		}
		known = true
		switch lacks := h.Lacks(r); {
		case !h.Alive:
		case h.Spec.Unschedulable:
			alive = true
			unfit = append(unfit, h.Name+": unschedulable")
		case !h.Matches(in.Selector):
			alive = true
			unfit = append(unfit, h.Name+": labels do not match")
		case len(lacks) > 0:
			alive = true
			full = append(full, h.Name+": "+strings.Join(lacks, ", "))
		default:
			alive = true
			if best.Name == "" || h.FreeShare() > best.FreeShare() {
				best = h
			}
		}
	}
	switch {
	case best.Name != "":
		return best.Name, nil
	case wanted != "" && !known:
		return "", errs.NewPermanent(in.Owner, "choose a host", fmt.Errorf("host %s: %w", wanted, errs.ErrNotFound), "burrow get hosts lists them")
	case !alive:
		return "", errs.NewTransient(in.Owner, "choose a host", noneAlive(wanted))
	case len(full) > 0:
		return "", errs.NewOperator(in.Owner, "choose a host",
			fmt.Errorf("%w: %s", errs.ErrNoSpace, strings.Join(append(full, unfit...), "; ")), "make room, add a host, or ask for less")
	}
	return "", errs.NewOperator(in.Owner, "choose a host",
		fmt.Errorf("no host fits: %s", strings.Join(unfit, "; ")), "change the selector, or the hosts' labels")
}

func wantedHost(in In) (string, error) {
	if in.NodeName != "" && in.OnHost != "" && in.NodeName != in.OnHost {
		return "", errs.NewPermanent(in.Owner, "choose a host",
			fmt.Errorf("%w: it is pinned to %s, and its volumes are on %s", errs.ErrInvalid, in.NodeName, in.OnHost),
			"take nodeName out, or use volumes of that host")
	}
	return cmp.Or(in.NodeName, in.OnHost), nil
}

func noneAlive(wanted string) error {
	if wanted != "" {
		return fmt.Errorf("%w: the worker of host %s does not answer", errs.ErrUnavailable, wanted)
	}
	return fmt.Errorf("%w: no host's worker answers", errs.ErrUnavailable)
}
