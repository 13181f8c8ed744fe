package ansible

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	guests "burrow.dev/burrow/activities/guest"
	"burrow.dev/burrow/internal/ansiblex"
	"burrow.dev/burrow/internal/ansiblex/inguest"
	"burrow.dev/burrow/internal/errs"
)

const (
	// askEvery is how often a guest is asked how its run stands: each question starts a few
	// programs there, which an emulated guest has no time for.
	askEvery = 3 * time.Second
	// loginEvery is the pause between attempts to log in.
	loginEvery = time.Second
	// silence is how long a guest may not answer, as while it is started again by its own
	// playbook, before that is said where people see it.
	silence = 5 * time.Minute
	// stopTimeout bounds ending a run in a guest that may be going away itself.
	stopTimeout = 5 * time.Second
	// maxGuestBytes bounds what is taken of a run's log and events: a guest may say for ever
	// that there is more. What is kept of it is far less.
	maxGuestBytes = 256 << 20
)

// guestRun is a run inside a guest, followed from here.
type guestRun struct {
	*running
	host   Host
	play   inguest.Play
	log    *ansiblex.Log
	inside *ansiblex.Inside
	shell  *guests.Shell
	known  inguest.Offsets
	taken  int
	stage  string
}

// doInGuest begins the run in the guest, unless it was, and follows it to its end.
func (r *running) doInGuest(ctx context.Context) (RunOut, error) {
	if len(r.in.Hosts) != 1 || r.a.o.Guests == nil {
		return RunOut{}, errs.NewPermanent(r.in.Owner, "run playbook in the guest", errs.Reason("%w: it is for one server, on its host", errs.ErrInvalid), "")
	}
	h := r.in.Hosts[0]
	g := &guestRun{running: r, host: h, known: inguest.Offsets{Try: 1}, play: inguest.Play{
		Key: r.in.InGuest, Spec: r.in.Ansible, Host: ansiblex.Host{
			Name: h.Server.Name, UID: h.Server.UID, Address: h.Address, Labels: h.Labels, Networks: h.Networks, Image: h.Image,
		},
	}}
	return r.withLog(ctx, func(folder *ansiblex.Folder, log *ansiblex.Log) (err error) {
		g.log = log
		log.Printf("run %s of %s in the guest of %s", r.rec.ID, strings.Join(r.in.Ansible.Playbook, ", "), r.in.Owner)
		if g.inside, err = folder.Follow(ansiblex.Sinks{Log: log, Event: r.event, Recap: r.counted}); err != nil {
			return errs.NewTransient(r.in.Owner, "open run log", err)
		}
		defer r.a.heartbeat(ctx, r.progress)()
		defer g.logout()
		exit, err := g.follow(ctx)
		if err != nil {
			g.inside.Close()
			g.abandon(ctx)
			return err
		}
		out := g.inside.Outcome(exit)
		r.counted(out.Recap)
		return g.verdict(out)
	})
}

// follow asks until the run has ended, through any loss of the connection, and gives
// ansible-playbook's exit status.
func (g *guestRun) follow(ctx context.Context) (exit int, err error) {
	heard := time.Now()
	for {
		answer, err := g.ask(ctx)
		wait := g.a.askEvery
		var own *errs.Error
		switch {
		case ctx.Err() != nil:
			return 0, ctx.Err()
		case errors.As(err, &own):
			return 0, err
		case err != nil:
			g.logout()
			if time.Since(heard) > silence {
				return 0, errs.NewTransient(g.in.Owner, "run playbook in the guest", fmt.Errorf("the guest has not answered for %s: %w", silence, err))
			}
			wait = min(wait, loginEvery)
		default:
			heard = time.Now()
			if over, exit, err := g.take(answer); over || err != nil {
				return exit, err
			}
			if len(answer.Log)+len(answer.Events) > 0 {
				continue // there may be more
			}
		}
		if err := pause(ctx, wait); err != nil {
			return 0, err
		}
	}
}

// take takes in what the guest said; over: the run has ended, and all of it is known.
func (g *guestRun) take(a inguest.Answer) (over bool, exit int, err error) {
	if a.Stage != g.stage {
		g.stage = a.Stage
		g.say(stageText[a.Stage])
	}
	g.inside.Output(a.Log)
	g.inside.Events(a.Events)
	g.known.Log += len(a.Log)
	g.known.Events += len(a.Events)
	g.taken += len(a.Log) + len(a.Events)
	fail := func(next, format string, args ...any) (bool, int, error) {
		return true, 0, errs.NewOperator(g.in.Owner, "run playbook in the guest", errs.Reason(format, args...), next)
	}
	more := len(a.Log)+len(a.Events) > 0
	switch {
	case g.taken > maxGuestBytes:
		return fail(nextStep(g.in.Owner), "it has printed more than %d MiB", maxGuestBytes>>20)
	case more:
		return false, 0, nil
	case a.Try > g.known.Try: // all of the try before is known
		g.known.Try, g.known.Events = a.Try, 0
		if err := g.inside.Again(); err != nil {
			return false, 0, errs.NewTransient(g.in.Owner, "open run log", err)
		}
		// Its events are asked for before its end is believed.
		return false, 0, nil
	case a.Interrupted && a.Stage != inguest.StagePlay: // it has done nothing yet
		if _, _, err := g.run(g.shell, g.play.Command("stop")); err != nil {
			g.log.Printf("cannot be begun anew: %v", err)
		}
		g.logout()
		g.known = inguest.Offsets{Try: 1}
		return false, 0, nil
	case a.Interrupted:
		return fail(nextStep(g.in.Owner), "the guest was started again while it ran: nobody knows what it has done")
	case !a.Ended:
		return false, 0, nil
	case a.Stage == inguest.StageInstall:
		return fail("use an image with ansible-core, or give the guest a way to its packages; then burrow retry "+g.in.Owner,
			"Ansible is not in the image, and could not be installed in the guest (exit status %d)", a.Exit)
	case a.Stage == inguest.StageFetch && a.Exit != 1:
		return fail(nextStep(g.in.Owner), "there is no file %s in what is run", strings.Join(g.in.Ansible.Playbook, ", "))
	case a.Stage == inguest.StageFetch:
		return fail(nextStep(g.in.Owner), "the guest could not fetch the playbook")
	}
	return true, a.Exit, nil
}

// stageText says what a run does before its tasks.
var stageText = map[string]string{
	inguest.StageWaiting: "wait for cloud-init in the guest", inguest.StageInstall: "install Ansible in the guest",
	inguest.StageFetch: "fetch the playbook in the guest",
}

// say shows what goes on, as if it were a task.
func (g *guestRun) say(text string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.now.Task = text
}

// verdict is that of a run from outside; but nothing is unreachable to a guest that is
// burrow's to try again.
func (g *guestRun) verdict(out ansiblex.Outcome) error {
	if out.Result == ansiblex.Unreachable {
		out.Result = ansiblex.Failed
	}
	return verdict(g.in, out, g.known.Try-1)
}
