package ansible

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"burrow.dev/burrow/activities"
	"burrow.dev/burrow/internal/ansiblex"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/internal/galaxy"
)

// Reap ends every run that may reach the server, whoever started it, or every run of an
// owner, and proves that nothing of it is alive. Its log is stored. No run is success.
func (a *Activities) Reap(ctx context.Context, in ReapIn) (activities.Nothing, error) {
	object, meant := in.Server.Ref(), func(rec ansiblex.Record) bool { return rec.Of(in.Server.UID) }
	if in.Owner != "" {
		object, meant = in.Owner, func(rec ansiblex.Record) bool { return rec.Owner == in.Owner }
	}
	if err := a.reap(ctx, meant); err != nil {
		return activities.Nothing{}, errs.NewTransient(object, "end playbook runs", err)
	}
	return activities.Nothing{}, nil
}

// ReapAll ends every run that is not this process's: what a killed worker left behind.
// For the start of a worker.
func (a *Activities) ReapAll(ctx context.Context) error {
	// Folders that never got their name hold nothing that runs.
	unfinished, err := filepath.Glob(filepath.Join(a.o.RunsDir, ".new-*"))
	if err != nil {
		return err
	}
	for _, dir := range unfinished {
		err = errors.Join(err, os.RemoveAll(dir))
	}
	records, listErr := ansiblex.Records(a.o.RunsDir)
	err = errors.Join(err, listErr, galaxy.Cache{Dir: a.o.GalaxyDir}.Clean())
	for _, rec := range records {
		a.mu.Lock()
		_, ours := a.active[rec.ID]
		a.mu.Unlock()
		if !ours {
			err = errors.Join(err, a.end(ctx, rec))
		}
	}
	return err
}

// reap ends the runs that are meant.
func (a *Activities) reap(ctx context.Context, meant func(ansiblex.Record) bool) error {
	if err := a.endActive(ctx, meant); err != nil {
		return err
	}
	records, err := ansiblex.Records(a.o.RunsDir)
	if err != nil {
		return err
	}
	for _, rec := range records {
		if meant(rec) {
			if err := a.end(ctx, rec); err != nil {
				return err
			}
		}
	}
	return nil
}

// endActive cancels this process's runs that are meant, and waits for them: an activity
// whose worker lost touch with Temporal may still be at it.
func (a *Activities) endActive(ctx context.Context, meant func(ansiblex.Record) bool) error {
	var others []*activeRun
	a.mu.Lock()
	for _, r := range a.active {
		if meant(r.record) {
			others = append(others, r)
		}
	}
	a.mu.Unlock()
	for _, r := range others {
		r.cancel(errSuperseded)
		select {
		case <-r.done:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// end kills what is left of a run, stores its log and removes its folder.
func (a *Activities) end(ctx context.Context, rec ansiblex.Record) error {
	if err := ansiblex.Stop(ctx, rec); err != nil {
		return err
	}
	folder := ansiblex.OpenFolder(a.o.RunsDir, rec.ID)
	if len(rec.ServerUIDs) > 0 {
		log, err := folder.OpenLog()
		if err != nil {
			return err
		}
		said := "the run was cut off (its worker ended); nothing of it is alive"
		if rec.InGuest {
			said = "the run was followed no further (its worker ended); in the guest it goes on, and a later log has all of it"
		}
		log.Printf("%s", said)
		if err := a.store(ctx, folder, log, rec); err != nil {
			return err
		}
	}
	a.o.Log.Info("ended a playbook run that was left behind", "run", rec.ID, "owner", rec.Owner)
	return folder.Remove()
}

// register notes a run of this process before it exists in any other way, so that of two
// runs for one server the later one finds the earlier one.
func (a *Activities) register(ctx context.Context, rec ansiblex.Record) (run context.Context, release func()) {
	run, cancel := context.WithCancelCause(ctx)
	r := &activeRun{record: rec, cancel: cancel, done: make(chan struct{})}
	a.mu.Lock()
	a.active[rec.ID] = r
	a.mu.Unlock()
	return run, func() {
		cancel(nil)
		a.mu.Lock()
		delete(a.active, rec.ID)
		a.mu.Unlock()
		close(r.done)
	}
}

// discard removes a run's folder at the end. It stays for Reap when that fails.
func (a *Activities) discard(f *ansiblex.Folder) {
	if err := f.Remove(); err != nil && !strings.Contains(err.Error(), "no such file") {
		a.o.Log.Warn("run folder is left behind", "run", f.ID, "error", err)
	}
}
