package ansible

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"burrow.dev/burrow/internal/ansiblex"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/manifest"
)

var (
	errTimeout    = errors.New("the run's time is over")
	errSuperseded = errors.New("a newer run for the same server has taken over")
)

// Run runs the playbooks against in.Hosts and returns when nothing of the run is alive
// and its log is stored. What an earlier attempt left behind is ended first. See RunOut
// for the errors; a cancelled run returns ctx's.
func (a *Activities) Run(ctx context.Context, in RunIn) (RunOut, error) {
	user, err := a.account()
	if err != nil {
		return RunOut{}, err
	}
	timeout, err := timeoutOf(in)
	if err != nil {
		return RunOut{}, err
	}
	now := time.Now()
	rec := ansiblex.Record{ID: ansiblex.NewRunID(now), Owner: in.Owner, CreatedAt: now, ServerUIDs: uidsOf(in.Hosts)}
	run, release := a.register(ctx, rec)
	defer release()
	run, cancel := context.WithTimeoutCause(run, timeout, errTimeout)
	defer cancel()
	for _, uid := range rec.ServerUIDs {
		if err := a.reap(run, uid, rec.ID); err != nil {
			return RunOut{}, errs.NewTransient(in.Owner, "end earlier playbook run", err)
		}
	}
	r := &running{a: a, in: in, user: user, rec: rec, recap: map[string]manifest.Recap{}}
	out, err := r.do(run)
	if err != nil && run.Err() != nil {
		return RunOut{}, stopped(ctx, run, in.Owner, timeout)
	}
	return out, err
}

// stopped says why a run was killed.
func stopped(ctx, run context.Context, owner string, timeout time.Duration) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(context.Cause(run), errTimeout):
		return errs.NewOperator(owner, "run playbook", errs.Reason("it has not ended within %s", timeout),
			fmt.Sprintf("%s, or raise spec.ansible.timeout", nextStep(owner)))
	}
	return errs.NewTransient(owner, "run playbook", context.Cause(run))
}

func timeoutOf(in RunIn) (time.Duration, error) {
	if in.Ansible.Timeout == "" {
		return defaultTimeout, nil
	}
	d, err := time.ParseDuration(string(in.Ansible.Timeout))
	if err != nil || d <= 0 {
		return 0, errs.NewPermanent(in.Owner, "read spec.ansible.timeout", errs.Reason("%q is not a duration", in.Ansible.Timeout), "")
	}
	return d, nil
}

func uidsOf(hosts []Host) []string {
	uids := make([]string, 0, len(hosts))
	for _, h := range hosts {
		uids = append(uids, h.Server.UID)
	}
	return uids
}

func playOf(spec manifest.Ansible) ansiblex.Play {
	return ansiblex.Play{
		Playbooks: spec.Playbook, Inventory: spec.Inventory, Tags: spec.Tags, SkipTags: spec.SkipTags,
		ExtraArgs: spec.ExtraArgs, ExtraVars: spec.ExtraVars,
	}
}

// running is one run in progress.
type running struct {
	a    *Activities
	in   RunIn
	user ansiblex.User
	rec  ansiblex.Record

	mu    sync.Mutex
	now   Progress
	recap map[string]manifest.Recap // of all tries; the last one of a host counts
}

// do makes the folder, runs, stores the log, and leaves nothing behind.
func (r *running) do(ctx context.Context) (out RunOut, err error) {
	hosts, signers, err := r.hosts(ctx)
	if err != nil {
		return RunOut{}, err
	}
	folder, err := ansiblex.MakeFolder(r.a.o.RunsDir, r.user, r.rec)
	if err != nil {
		return RunOut{}, err
	}
	defer r.a.discard(folder)
	log, err := folder.OpenLog()
	if err != nil {
		return RunOut{}, errs.NewTransient(r.in.Owner, "open run log", err)
	}
	defer func() {
		if err != nil {
			log.Printf("%v", logged(err))
		}
		if e := r.a.store(ctx, folder, log, r.rec); e != nil {
			// What the run did is done; running it again would not bring the log back.
			r.a.o.Log.Error("run log is lost", "run", r.rec.ID, "owner", r.in.Owner, "error", e)
		}
	}()
	log.Printf("run %s of %s for %s, %s", r.rec.ID, strings.Join(r.in.Ansible.Playbook, ", "), r.in.Owner, r.in.Bundle)
	if err := r.a.fetch(ctx, r.in.Owner, r.in.Bundle, folder.Bundle()); err != nil {
		return RunOut{}, err
	}
	play := playOf(r.in.Ansible)
	play.Hosts = hosts
	if play.Burrow, err = ansiblex.ReachableProgram(r.a.o.RunsDir, r.a.o.Burrow); err != nil {
		return RunOut{}, err
	}
	prepared, err := folder.Prepare(play)
	if err != nil {
		return RunOut{}, about(r.in.Owner, err)
	}
	serving, err := r.serve(ctx, folder, log, signers)
	if err != nil {
		return RunOut{}, errs.NewTransient(r.in.Owner, "open run sockets", err)
	}
	defer serving()
	stop := r.a.heartbeat(ctx, r.progress)
	defer stop()
	if err := r.tries(ctx, prepared, log); err != nil {
		return RunOut{}, err
	}
	return RunOut{RunID: r.rec.ID, LogKey: logKey(r.rec), Recap: r.progress().Recap}, nil
}

// hosts loads the management keys.
func (r *running) hosts(ctx context.Context) ([]ansiblex.Host, []ssh.Signer, error) {
	var hosts []ansiblex.Host
	var signers []ssh.Signer
	for _, h := range r.in.Hosts {
		signer, err := r.a.o.Keys.Management(ctx, h.Server.UID)
		if err != nil {
			return nil, nil, errs.New(errs.ClassOf(err), h.Server.Ref(), "load management key", err, "")
		}
		signers = append(signers, signer)
		hosts = append(hosts, ansiblex.Host{
			Name: h.Server.Name, UID: h.Server.UID, Address: h.Address, Login: h.Login, HostKeys: h.HostKeys,
			Key: signer.PublicKey(), Labels: h.Labels, Networks: h.Networks, Image: h.Image,
		})
	}
	if len(hosts) == 0 {
		return nil, nil, errs.NewPermanent(r.in.Owner, "run playbook", errs.Reason("no server is named"), "")
	}
	return hosts, signers, nil
}

// tries runs the play, and again for the hosts on which a task failed.
func (r *running) tries(ctx context.Context, p *ansiblex.Prepared, log *ansiblex.Log) error {
	var hosts []string // nil: all
	for try := 0; ; try++ {
		out, err := p.Run(ctx, hosts, ansiblex.Sinks{Log: log, Event: r.event, Recap: r.counted})
		if err != nil {
			if ctx.Err() != nil {
				return err
			}
			return errs.NewTransient(r.in.Owner, "run playbook", err)
		}
		r.counted(out.Recap)
		if out.Result != ansiblex.Failed || try >= r.in.Ansible.Retries {
			return verdict(r.in, out, try)
		}
		hosts = hosts[:0]
		for _, f := range out.Failures {
			hosts = append(hosts, f.Host)
		}
		log.Printf("retry %d of %d, for %s", try+1, r.in.Ansible.Retries, strings.Join(hosts, ", "))
		if err := pause(ctx, retryPause); err != nil {
			return err
		}
	}
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// event keeps what the heartbeat shows.
func (r *running) event(e ansiblex.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch e.Event {
	case ansiblex.EventPlay:
		r.now.Play, r.now.Task, r.now.Host = e.Play, "", ""
	case ansiblex.EventTask:
		r.now.Task, r.now.Host = e.Task, ""
	case ansiblex.EventResult:
		r.now.Host = e.Host
	}
}

func (r *running) counted(recap map[string]manifest.Recap) {
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.Copy(r.recap, recap)
}

func (r *running) progress() Progress {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.now
	p.RunID, p.Recap = r.rec.ID, maps.Clone(r.recap)
	return p
}

// heartbeat reports until the function it returns is called.
func (a *Activities) heartbeat(ctx context.Context, now func() Progress) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var done sync.WaitGroup
	done.Go(func() {
		ticker := time.NewTicker(heartbeatEvery)
		defer ticker.Stop()
		for {
			a.beat(ctx, now())
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
		}
	})
	return func() { cancel(); done.Wait() }
}
