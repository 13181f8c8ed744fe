package ansible

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"time"

	"burrow.dev/burrow/activities"
	"burrow.dev/burrow/internal/ansiblex"
	"burrow.dev/burrow/internal/errs"
)

// What the heartbeat of a check says it does.
const (
	taskPrepare = "prepare"
	taskInstall = "install requirements"
	taskCheck   = "syntax check"
)

// Check parses the bundle's playbooks with all that they include, as the unprivileged
// user, against the user's inventory and the server's name. What Ansible refuses is
// Permanent, with its message; no server is reached or changed. What a requirements file names
// is installed first.
func (a *Activities) Check(ctx context.Context, in CheckIn) (activities.Nothing, error) {
	none := activities.Nothing{}
	user, err := a.account()
	if err != nil {
		return none, err
	}
	now := time.Now()
	rec := ansiblex.Record{ID: ansiblex.NewRunID(now), Owner: in.Owner, CreatedAt: now}
	run, release := a.register(ctx, rec)
	defer release()
	folder, err := ansiblex.MakeFolder(a.o.RunsDir, user, rec)
	if err != nil {
		return none, err
	}
	defer a.discard(folder)
	if err := a.fetch(run, in.Owner, in.Bundle, folder.Bundle()); err != nil {
		return none, err
	}
	log, err := folder.OpenLog()
	if err != nil {
		return none, errs.NewTransient(in.Owner, "check playbook", err)
	}
	defer log.Close()
	var task atomic.Value
	task.Store(taskPrepare)
	stop := a.heartbeat(run, func() Progress { return Progress{RunID: rec.ID, Task: task.Load().(string)} })
	defer stop()
	// All that the run will need is looked for now; what is encrypted must be read to be parsed.
	secret, err := a.secrets(run, in.Owner, in.Ansible, errs.Permanent, "try again")
	if err != nil {
		return none, err
	}
	log.Hide(secret.redactor())
	play := ansiblex.PlayOf(in.Ansible)
	play.Bundle, play.SyntaxCheck, play.VaultPassword = in.Bundle, true, secret.of(in.Ansible.VaultPassword)
	if name, ok := strings.CutPrefix(in.Owner, "server/"); ok {
		play.Hosts = []ansiblex.Host{{Name: name}}
	}
	prepared, err := folder.Prepare(play)
	if err != nil {
		return none, about(in.Owner, err)
	}
	task.Store(taskInstall)
	if err := a.require(run, in.Owner, user, prepared, log, errs.Permanent, "mend "+play.Requirements+" and apply again"); err != nil {
		return none, err
	}
	task.Store(taskCheck)
	run, cancel := context.WithTimeout(run, checkTimeout)
	defer cancel()
	out, err := prepared.Run(run, nil, ansiblex.Sinks{Log: log})
	if err != nil {
		return none, checkStopped(ctx, in.Owner, err)
	}
	return none, checkVerdict(in.Owner, out)
}

// checkStopped tells a check that took too long from one that was cancelled.
func checkStopped(ctx context.Context, owner string, err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return errs.NewPermanent(owner, "check playbook", errs.Reason("the syntax check has not ended within %s", checkTimeout),
			"does its inventory start a script that waits for something?")
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return errs.NewTransient(owner, "check playbook", err)
}

func checkVerdict(owner string, out ansiblex.Outcome) error {
	switch out.Result {
	case ansiblex.OK:
		return nil
	case ansiblex.Killed:
		return errs.NewTransient(owner, "check playbook", errs.Reason("ansible-playbook was killed"))
	}
	return errs.NewPermanent(owner, "check playbook", errs.Reason("Ansible refuses it: %s", out.Message), "mend the playbook and apply again")
}

// about names the owner of an error that knows only the file.
func about(owner string, err error) error {
	return errs.New(errs.ClassOf(err), owner, "prepare playbook", err, "")
}
