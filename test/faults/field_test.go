package faults

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"burrow.dev/burrow/internal/capacity"
	"burrow.dev/burrow/manifest"
)

// field is a site with slots, the world before any cell, and what a finished operation
// leaves, learned from one that nothing happened to.
type field struct {
	*site
	slots  []*slot
	before []string
	worlds map[string][]string
	serial int
}

// newField prepares a site for width cells at a time.
func newField(s *site, width int) *field {
	s.t.Helper()
	f := &field{site: s, worlds: map[string][]string{}}
	disk := filepath.Join(s.t.TempDir(), "blank.qcow2")
	out, err := exec.Command("qemu-img", "create", "-q", "-f", "qcow2", disk, "64M").CombinedOutput()
	require.NoError(s.t, err, "%s", out)
	s.must("image", "import", disk, "--name", "blank", "--user", "root")
	s.makeRoom()
	s.pack()
	var text strings.Builder
	for i := range width {
		n := &slot{number: i}
		f.slots = append(f.slots, n)
		fmt.Fprintf(&text, "apiVersion: v1\nkind: Network\nmetadata: {name: %s}\nspec: {mode: nat, subnets: [{cidr: 10.%d.0.0/20}]}\n---\n", n.network(0), 64+i)
		fmt.Fprintf(&text, "apiVersion: v1\nkind: Network\nmetadata: {name: %s}\nspec: {mode: isolated, subnets: [{cidr: 10.%d.0.0/20}]}\n---\n", n.network(1), 96+i)
		fmt.Fprintf(&text, "apiVersion: v1\nkind: Volume\nmetadata: {name: %s}\nspec: {size: 1}\n---\n", n.volume())
	}
	s.apply(text.String())
	for _, n := range f.slots {
		for i := range 2 {
			rec, err := s.store.Get(s.t.Context(), manifest.KindNetwork, n.network(i))
			require.NoError(s.t, err)
			n.networks = append(n.networks, rec)
		}
		rec, err := s.store.Get(s.t.Context(), manifest.KindVolume, n.volume())
		require.NoError(s.t, err)
		n.kept = rec
	}
	f.await(func(ctx context.Context) error {
		return until(ctx, "host-bridge is declared", func() error {
			rec, err := s.store.Get(ctx, manifest.KindNetwork, manifest.HostBridge)
			if err == nil && !rec.Status.Phase.Settled() {
				err = fmt.Errorf("it is %s", rec.Status.Phase)
			}
			return err
		})
	})
	// The first server makes what stays: libvirt's caches, OVS's datapath device.
	f.await(func(ctx context.Context) error {
		c := f.subject(manifest.KindServer, f.slots[0])
		return errors.Join(withServer(ctx, c), c.remove(ctx))
	})
	f.before, err = f.census(s.t.Context())
	require.NoError(s.t, err)
	return f
}

// manyGuests: a guest without a system takes next to no processor.
const manyGuests = 1000

// makeRoom lets the host take more guests than it has processors for.
func (s *site) makeRoom() {
	s.t.Helper()
	_, err := s.store.Update(s.t.Context(), manifest.KindHost, s.conf.Worker.Host.Name, func(rec *manifest.Record) error {
		var spec capacity.Spec
		err := json.Unmarshal(rec.Spec, &spec)
		if err == nil {
			spec.CPUOvercommit = manyGuests
			rec.Spec, err = json.Marshal(spec)
		}
		return err
	})
	require.NoError(s.t, err)
}

// apply declares documents by the program.
func (s *site) apply(text string) {
	s.t.Helper()
	file := filepath.Join(s.t.TempDir(), "apply.yaml")
	require.NoError(s.t, writeFile(file, text))
	s.must("apply", "-f", file)
}

// subject makes the resource of the next cell.
func (f *field) subject(kind manifest.Kind, n *slot) *subject {
	f.serial++
	return &subject{site: f.site, slot: n, kind: kind, name: fmt.Sprintf("s%04dz", f.serial)}
}

// learn runs operations once, undisturbed, and keeps what they leave, unless that is known:
// a slice does not wait for worlds that it has no cell of.
func (f *field) learn(ops []operation) {
	f.t.Helper()
	f.await(func(ctx context.Context) error {
		for _, op := range ops {
			if (op.ends == worldGone || f.worlds[op.ends] != nil) && (op.from == worldGone || f.worlds[op.from] != nil) {
				continue
			}
			c := f.subject(op.kind, f.slots[0])
			if op.prepare != nil {
				if err := op.prepare(ctx, c); err != nil {
					return err
				}
			}
			if err := f.learned(ctx, c, op.from); err != nil {
				return err
			}
			if err := c.well(ctx, op.start); err != nil {
				return fmt.Errorf("%s: %w", op.name, err)
			}
			if err := f.learned(ctx, c, op.ends); err != nil {
				return err
			}
			if err := c.remove(ctx); err != nil {
				return err
			}
			if op.plays {
				f.keep("runs: ") // the program that runs of playbooks reach guests with
			}
		}
		return nil
	})
}

// learned keeps what there is of a subject now as the world of that name.
func (f *field) learned(ctx context.Context, c *subject, world string) error {
	if world == worldGone || f.worlds[world] != nil {
		return nil
	}
	census, err := f.census(ctx)
	if err == nil {
		f.worlds[world] = c.traces(census, f.before)
	}
	return err
}

// censusEvery spares the machine: a census runs a dozen programs.
const censusEvery = 500 * time.Millisecond

// clean waits until the world is as it was before the first cell.
func (f *field) clean() {
	f.t.Helper()
	f.await(func(ctx context.Context) error { return f.same(ctx) })
}

// keep counts what there is of a kind by now as there from the beginning.
func (f *field) keep(kind string) {
	f.t.Helper()
	now, err := f.census(f.t.Context())
	require.NoError(f.t, err)
	for _, line := range difference(now, f.before) {
		if strings.HasPrefix(line, kind) {
			f.before = append(f.before, line)
		}
	}
}

func (f *field) same(ctx context.Context) error {
	ctx, stop := context.WithTimeout(ctx, settleTime)
	defer stop()
	return untilEvery(ctx, censusEvery, "the world as it was", func() error {
		now, err := f.census(ctx)
		if err != nil {
			return err
		}
		return compare(now, f.before)
	})
}

// compare says what is there and should not be, and what should be and is not.
func compare(now, wanted []string) error {
	left, gone := difference(now, wanted), difference(wanted, now)
	if len(left)+len(gone) == 0 {
		return nil
	}
	var b strings.Builder
	for _, line := range left {
		b.WriteString("\n  + " + line)
	}
	for _, line := range gone {
		b.WriteString("\n  - " + line)
	}
	return fmt.Errorf("not as expected:%s", b.String())
}

// outcome is how a cell went.
type outcome struct {
	cell cell
	err  error
}

// play runs cells side by side, one in each slot, compares what each left with what it
// must leave, removes it, and compares the world with the one before.
func (f *field) play(cells []cell) []outcome {
	f.t.Helper()
	var ops []operation
	for _, c := range cells {
		ops = append(ops, c.op)
	}
	f.learn(ops)
	out := make([]outcome, len(cells))
	subjects := make([]*subject, len(cells))
	ctx, cancel := context.WithTimeout(f.t.Context(), patience)
	defer cancel()
	for i, c := range cells {
		out[i].cell = c
		subjects[i] = f.subject(c.op.kind, f.slots[i])
	}
	side := func(do func(i int) error) {
		var group sync.WaitGroup
		for i := range cells {
			if out[i].err != nil {
				continue
			}
			group.Go(func() { out[i].err = do(i) })
		}
		group.Wait()
	}
	side(func(i int) error { return cells[i].prepare(ctx, subjects[i]) })
	side(func(i int) error { return cells[i].run(ctx, subjects[i]) })
	f.worker.signal(contSignal) // one that was frozen and whose cell gave up
	if err := f.worker.ready(ctx); err != nil {
		f.t.Errorf("after %v: %v", cells, err)
	}
	f.verify(ctx, out, subjects)
	// A cell that used up its time must not leave its things to the next ones.
	ctx, cancel = context.WithTimeout(f.t.Context(), patience)
	defer cancel()
	var removal errgroup.Group
	for i, c := range subjects {
		removal.Go(func() error {
			err := errors.Join(f.orders.forget(c.ref()), c.remove(ctx))
			if err != nil && out[i].err == nil {
				out[i].err = fmt.Errorf("delete afterwards: %w", err)
			}
			return nil
		})
	}
	_ = removal.Wait()
	if err := f.same(ctx); err != nil {
		for i := range out {
			if out[i].err == nil {
				out[i].err = fmt.Errorf("after deleting what it and its neighbours had made, the world is %w", err)
			}
		}
		f.before, _ = f.census(ctx) // the next cells are not to blame
	}
	return out
}
