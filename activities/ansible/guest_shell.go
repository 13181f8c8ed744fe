package ansible

import (
	"context"
	"errors"
	"fmt"
	"strings"

	guests "burrow.dev/burrow/activities/guest"
	"burrow.dev/burrow/internal/ansiblex/inguest"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/internal/plaintext"
)

// exitAbsent is the status of a runner that is not there.
const exitAbsent = 127

// asRoot gives the command that runs a script of words without quotes; the login's user, if
// it is not root, may use sudo.
func asRoot(script string) string {
	script = "/bin/sh -c '" + script + "'"
	return `if [ "$(id -u)" = 0 ]; then exec ` + script + `; else exec sudo -n ` + script + `; fi`
}

// run tells the guest's runner something.
func (g *guestRun) run(shell *guests.Shell, command []string) (text []byte, exit int, err error) {
	runner := command[1]
	return shell.Run(asRoot(fmt.Sprintf("[ -e %s ] || exit %d; exec %s", runner, exitAbsent, strings.Join(command, " "))), nil, inguest.MaxAnswer)
}

// ask asks how the run stands, logging in and beginning it when need be. An *errs.Error is
// final; any other is the connection's, which may come back.
func (g *guestRun) ask(ctx context.Context) (inguest.Answer, error) {
	if g.shell == nil {
		if err := g.login(ctx); err != nil {
			return inguest.Answer{}, err
		}
	}
	text, exit, err := g.run(g.shell, g.play.Read(g.known))
	if err != nil {
		return inguest.Answer{}, err
	}
	if exit != 0 {
		return inguest.Answer{}, g.refused("ask how it stands", text, exit)
	}
	answer, err := inguest.ParseAnswer(text)
	if err != nil {
		return answer, g.refused("ask how it stands", []byte(err.Error()), exit)
	}
	return answer, nil
}

// login logs in, and sees that the run is there and has begun.
func (g *guestRun) login(ctx context.Context) error {
	shell, err := g.a.o.Guests.Shell(ctx, guests.ShellIn{
		Server: g.host.Server, Network: g.host.Network, Address: g.host.Address, Login: g.host.Login, HostKeys: g.host.HostKeys,
	})
	if err != nil {
		return err
	}
	g.shell = shell
	text, exit, err := g.run(shell, g.play.Command("start"))
	if err == nil && exit == exitAbsent { // it was not in the seed
		if err := g.send(ctx); err != nil {
			return err
		}
		text, exit, err = g.run(shell, g.play.Command("start"))
	}
	if err == nil && exit != 0 {
		err = g.refused("begin it", text, exit)
	}
	return err
}

// send puts the run's files into the guest: all of them, or none.
func (g *guestRun) send(ctx context.Context) error {
	if err := g.play.Pack(ctx, g.a.o.Blobs, g.in.Bundle); err != nil {
		return held(g.in.Owner, err)
	}
	files, err := g.play.Sent()
	if err != nil {
		return held(g.in.Owner, err)
	}
	dir := g.play.Dir()
	script := fmt.Sprintf(`umask 077; rm -rf %[1]s.new %[1]s && mkdir -p %[1]s.new && tar -xf - -C %[1]s.new && mv %[1]s.new %[1]s`, dir)
	text, exit, err := g.shell.Run(asRoot(script), files, inguest.MaxAnswer)
	if err == nil && exit != 0 {
		err = g.refused("send it", text, exit)
	}
	return err
}

// held makes an error one for a person: the server stands, and what is wrong can be mended.
func held(owner string, err error) error {
	if errs.ClassOf(err) != errs.Permanent {
		return err
	}
	return errs.NewOperator(owner, "run playbook in the guest", err, nextStep(owner))
}

// refused is the error of a command that ran, and failed.
func (g *guestRun) refused(what string, text []byte, exit int) error {
	const most = 300
	said := plaintext.Line(string(text), most)
	if said == "" {
		said = fmt.Sprintf("exit status %d", exit)
	}
	return errs.NewOperator(g.in.Owner, "run playbook in the guest", errs.Reason("cannot %s there: %s", what, said),
		fmt.Sprintf("its login user %s must be root, or may use sudo without a password; then burrow retry %s", g.host.Login, g.in.Owner))
}

// abandon ends the run in the guest, as far as that can be reached in a moment, when nobody
// waits for it any more. A run that is only out of sight goes on: the next attempt finds it.
func (g *guestRun) abandon(ctx context.Context) {
	if ctx.Err() == nil || errors.Is(context.Cause(ctx), errSuperseded) {
		return
	}
	g.logout()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	shell, err := g.a.o.Guests.Shell(ctx, guests.ShellIn{
		Server: g.host.Server, Network: g.host.Network, Address: g.host.Address, Login: g.host.Login, HostKeys: g.host.HostKeys,
	})
	if err != nil {
		g.log.Printf("it may go on in the guest, which cannot be reached: %v", err)
		return
	}
	defer shell.Close()
	if _, exit, err := g.run(shell, g.play.Command("stop")); err != nil || exit != 0 {
		g.log.Printf("it may go on in the guest: it could not be stopped there (exit status %d, %v)", exit, err)
	}
}

func (g *guestRun) logout() {
	if g.shell != nil {
		_ = g.shell.Close()
		g.shell = nil
	}
}
