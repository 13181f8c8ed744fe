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
	errSuperseded = errors.New("a newer run has taken over")
)

// Run runs the playbooks against in.Hosts and returns when nothing of the run is alive
// and its log is stored. What an earlier attempt left behind is ended first. See RunOut
// for the errors; a cancelled run returns ctx's.
func (a *Activities) Run(ctx context.Context, in RunIn) (RunOut, error) {
	account := a.account
	if in.InGuest != "" { // it needs no program here
		account = func() (ansiblex.User, error) { return ansiblex.LookupUser(a.o.User) }
	}
	user, err := account()
	if err != nil {
		return RunOut{}, err
	}
	timeout, err := timeoutOf(in)
	if err != nil {
		return RunOut{}, err
	}
	now := time.Now()
	rec := ansiblex.Record{ID: ansiblex.NewRunID(now), Owner: in.Owner, CreatedAt: now, ServerUIDs: uidsOf(in.Hosts), InGuest: in.InGuest != ""}
	run, release := a.register(ctx, rec)
	defer release()
	run, cancel := context.WithTimeoutCause(run, timeout, errTimeout)
	defer cancel()
	// Of this owner's only: a server's own playbook and one over several servers are two
	// people's work, and may go side by side.
	earlier := func(other ansiblex.Record) bool { return other.Owner == in.Owner && other.ID != rec.ID }
	if err := a.reap(run, earlier); err != nil {
		return RunOut{}, errs.NewTransient(in.Owner, "end earlier playbook run", err)
	}
	r := &running{a: a, in: in, user: user, rec: rec, recap: map[string]manifest.Recap{}}
	do := r.do
	if in.InGuest != "" {
		do = r.doInGuest
	}
	out, err := do(run)
	if err != nil && run.Err() != nil {
		err = stopped(ctx, run, in.Owner, timeout)
	}
	if err != nil && r.stored {
		err = &endedError{err, r.out()}
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

// running is one run in progress.
type running struct {
	a    *Activities
	in   RunIn
	user ansiblex.User
	rec  ansiblex.Record

	stored bool // its log
	// requirements is the digest of the file, once it is read.
	requirements string
	redactor     *ansiblex.Redactor

	mu    sync.Mutex
	now   Progress
	recap map[string]manifest.Recap // of all tries; the last one of a host counts
}

// do makes the folder, runs, stores the log, and leaves nothing behind.
func (r *running) do(ctx context.Context) (RunOut, error) {
	hosts, signers, err := r.hosts(ctx)
	if err != nil {
		return RunOut{}, err
	}
	return r.withLog(ctx, func(folder *ansiblex.Folder, log *ansiblex.Log) error {
		return r.outside(ctx, folder, log, hosts, signers)
	})
}

// withLog does what it is given, with a folder and a log, which is stored at the end.
func (r *running) withLog(ctx context.Context, do func(*ansiblex.Folder, *ansiblex.Log) error) (out RunOut, err error) {
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
			return
		}
		r.stored = true
	}()
	if err := do(folder, log); err != nil {
		return RunOut{}, err
	}
	return r.out(), nil
}

// outside runs the playbooks here.
func (r *running) outside(ctx context.Context, folder *ansiblex.Folder, log *ansiblex.Log, hosts []ansiblex.Host, signers []ssh.Signer) error {
	log.Printf("run %s of %s for %s, %s", r.rec.ID, strings.Join(r.in.Ansible.Playbook, ", "), r.in.Owner, r.in.Bundle)
	if err := r.a.fetch(ctx, r.in.Owner, r.in.Bundle, folder.Bundle()); err != nil {
		return err
	}
	secret, err := r.a.secrets(ctx, r.in.Owner, r.in.Ansible, errs.Operator, "burrow retry "+r.in.Owner)
	if err != nil {
		return err
	}
	r.redactor = secret.redactor()
	log.Hide(r.redactor)
	play := ansiblex.PlayOf(r.in.Ansible)
	play.Bundle, play.Hosts, play.Whole, play.ExtraVars = r.in.Bundle, hosts, r.in.Whole, secret.inAll(r.in.Ansible.ExtraVars)
	play.VaultPassword, play.BecomePassword = secret.of(r.in.Ansible.VaultPassword), secret.of(r.in.Ansible.BecomePassword)
	if play.Burrow, err = ansiblex.ReachableProgram(r.a.o.RunsDir, r.a.o.Burrow); err != nil {
		return err
	}
	prepared, err := folder.Prepare(play)
	if err != nil {
		return about(r.in.Owner, err)
	}
	stop := r.a.heartbeat(ctx, r.progress)
	defer stop()
	if err := r.require(ctx, prepared, log); err != nil {
		return err
	}
	serving, err := r.serve(ctx, folder, log, signers)
	if err != nil {
		return errs.NewTransient(r.in.Owner, "open run sockets", err)
	}
	defer serving()
	return r.tries(ctx, prepared, log)
}

func (r *running) out() RunOut {
	return RunOut{RunID: r.rec.ID, LogKey: logKey(r.rec), Recap: r.progress().Recap, Requirements: r.requirements}
}

// require has the play find what its requirements file names.
func (r *running) require(ctx context.Context, p *ansiblex.Prepared, log *ansiblex.Log) error {
	needs := p.Needs()
	if needs == nil {
		return nil
	}
	r.requirements = needs.Digest
	r.event(ansiblex.Event{Event: ansiblex.EventTask, Task: taskInstall})
	return r.a.require(ctx, r.in.Owner, r.user, p, log, errs.Operator,
		"mend "+r.in.Ansible.Requirements+", then burrow retry "+r.in.Owner+" -f FILE")
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
			hosts = append(hosts, r.named(f.Host)...)
		}
		log.Printf("retry %d of %d, for %s", try+1, r.in.Ansible.Retries, strings.Join(hosts, ", "))
		if err := pause(ctx, retryPause); err != nil {
			return err
		}
	}
}

// named gives the server that an event calls host: a name with a secret in it is hidden there.
func (r *running) named(host string) []string {
	var names []string
	for _, h := range r.in.Hosts {
		if r.redactor.Text(h.Server.Name) == host {
			names = append(names, h.Server.Name)
		}
	}
	if len(names) == 0 {
		return []string{host} // one of the user's own inventory
	}
	return names
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
