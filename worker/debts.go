package worker

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"reflect"

	"burrow.dev/burrow/activities"
	"burrow.dev/burrow/activities/ipam"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/internal/etcdstate"
)

// debtor is a host that was declared lost and is back. Before it takes work or starts a
// guest, it does what operations had to leave to it.
type debtor struct {
	host  string
	store *etcdstate.Store
	// do are the activities that a debt may name.
	do  map[string]any
	log *slog.Logger
}

// debtor is this host as one that may owe something.
func (h *host) debtor() debtor {
	do := h.activities()
	do[activities.IPAMRelease] = ipam.New(h.store, h.pool).ReleaseOwed
	return debtor{host: h.Config.Host.Name, store: h.store, do: do, log: h.Log}
}

// payAll pays in the order in which the debts were made, and takes the mark off when none
// is left. What is refused for good (it met what is not ours) is struck out, as an undo
// goes on behind it; drift shows what of it is left.
func (d debtor) payAll(ctx context.Context) error {
	lost, err := d.store.IsLost(ctx, d.host)
	if err != nil || !lost {
		return err
	}
	for {
		debts, err := d.store.Debts(ctx, d.host)
		if err != nil {
			return err
		}
		for _, debt := range debts {
			if err := d.pay(ctx, debt); err != nil {
				return err
			}
		}
		found, err := d.store.FoundAgain(ctx, d.host)
		if err != nil {
			return err
		}
		if found {
			d.log.Info("the host was declared lost, and is back: nothing is owed any more", slog.String("host", d.host))
			return nil
		}
	}
}

func (d debtor) pay(ctx context.Context, debt etcdstate.Debt) error {
	d.log.Info("does what it owes", slog.String("debt", debt.String()), slog.Time("since", debt.Since))
	err := d.call(ctx, debt)
	if errs.ClassOf(err) == errs.Permanent {
		d.log.Error("a debt is refused for good", slog.String("debt", debt.String()), slog.Any("error", err))
		err = nil
	}
	if err != nil {
		return fmt.Errorf("what it owes from the time when it was lost: %w", err)
	}
	return d.store.PayDebt(ctx, debt)
}

// call calls the activity that a debt names, as its worker would.
func (d debtor) call(ctx context.Context, debt etcdstate.Debt) error {
	run := reflect.ValueOf(d.do[debt.Activity])
	if !run.IsValid() {
		return errs.NewPermanent(debt.Object, debt.What, fmt.Errorf("activity %s: %w", debt.Activity, errs.ErrNotFound), "use the version of burrow that wrote it down")
	}
	in := reflect.New(run.Type().In(1))
	if err := json.Unmarshal(debt.Input, in.Interface()); err != nil {
		return errs.NewPermanent(debt.Object, debt.What, err, "")
	}
	out := run.Call([]reflect.Value{reflect.ValueOf(ctx), in.Elem()})
	err, _ := out[len(out)-1].Interface().(error)
	return err
}
