package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"

	ucli "github.com/urfave/cli/v2"

	"burrow.dev/burrow/cli/follow"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/manifest"
	"burrow.dev/burrow/workflows"
)

// hostLostCommand declares that a host does not come back.
func hostLostCommand() *ucli.Command {
	return &ucli.Command{
		Name: "lost", Usage: "declare that a host does not come back, so that nothing waits for it any more", ArgsUsage: "NAME",
		Description: "Operations that wait for the host end: a build fails, a delete goes to its end. What they would have\n" +
			"removed there is written down. If the host comes back after all, it does that before anything else,\n" +
			"and then it is Ready again, with the servers that were not deleted. Until then addresses of deleted\n" +
			"servers are kept, since their guests may still run there. Nothing is moved to another host.\n" +
			"A host whose worker lives is refused.",
		Flags: []ucli.Flag{
			&ucli.BoolFlag{Name: "yes", Aliases: []string{"y"}, Usage: "do not ask"},
			leaveFlag(), outputFlag("table", "json"),
		},
		Action: loseHost,
	}
}

func loseHost(c *ucli.Context) error {
	name, err := hostArg(c)
	if err != nil {
		return err
	}
	gw, err := openGateway(c)
	if err != nil {
		return err
	}
	defer func() { _ = gw.Close() }()
	rec, err := look(c.Context, gw, Ref{manifest.KindHost, name})
	if err != nil {
		return err
	}
	ref := manifest.Ref(manifest.KindHost, name)
	if rec.Status.Phase == manifest.PhaseReady {
		return errs.NewPermanent(ref, "declare lost", errs.Reason("its worker lives"),
			"what is there is removed as usual: `burrow delete KIND/NAME`; stop its worker first if the machine is really to go")
	}
	if !c.Bool("yes") {
		there, err := onHosts(c, gw)
		if err != nil {
			return err
		}
		writeLoss(c.App.ErrWriter, ref, there[name])
		ok, err := confirm(c, "Declare "+ref+" lost?")
		if err != nil {
			return err
		}
		if !ok {
			fmt.Fprintln(c.App.Writer, "nothing changed")
			return nil
		}
	}
	tc, err := openTemporal(c)
	if err != nil {
		return err
	}
	defer tc.Close()
	id := workflows.LoseHostID(name)
	t, err := startWith(c.Context, tc, startOptions(id, "declare "+ref+" lost"), workflows.NameLoseHost,
		workflows.LoseHostIn{Host: name, RequestedBy: requestedBy()}, func() error { return busy(c.Context, tc, id) })
	if err != nil {
		return err
	}
	return followed(c, tc, []follow.Target{t}...)
}

// writeLoss says what will come of it.
func writeLoss(w io.Writer, ref string, t *tenancy) {
	if t == nil {
		t = &tenancy{}
	}
	var standing, open []string
	for _, rec := range slices.Concat(t.servers, t.volumes) {
		name := manifest.Ref(rec.Kind, rec.Metadata.Name)
		if op := rec.Status.Operation; op != nil {
			open = append(open, name+" ("+op.Type+")")
		} else {
			standing = append(standing, name)
		}
	}
	list := func(names []string, what string) {
		if len(names) > 0 {
			slices.Sort(names)
			fmt.Fprintf(w, "%s: %s\n", what, strings.Join(names, ", "))
		}
	}
	list(open, "Operations that will wait for "+ref+" no more")
	list(standing, "Kept as they are, and out of reach until it is back or they are deleted")
}
