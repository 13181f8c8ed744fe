package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	ucli "github.com/urfave/cli/v2"
	"go.temporal.io/sdk/client"

	"burrow.dev/burrow/cli/follow"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/manifest"
	"burrow.dev/burrow/workflows"
)

// deleteCommand takes resources away.
func deleteCommand() *ucli.Command {
	return &ucli.Command{
		Name:      "delete",
		Category:  categoryOperations,
		Usage:     "take a server, network, volume, image or playbook away",
		ArgsUsage: "KIND NAME | KIND/NAME ...",
		Description: "An operation that is open on it is cancelled and undone first. A server's persistent volumes stay;\n" +
			"deleting a volume deletes its data.",
		Flags: []ucli.Flag{
			&ucli.BoolFlag{Name: "yes", Aliases: []string{"y"}, Usage: "do not ask"},
			leaveFlag(), outputFlag("table", "json"),
		},
		Action: remove,
	}
}

func remove(c *ucli.Context) error {
	refs, err := resourceArgs(c, 0)
	if err != nil {
		return err
	}
	return removeRefs(c, refs)
}

// removeRefs asks, then starts the deletes and follows them.
func removeRefs(c *ucli.Context, refs []Ref) error {
	gw, err := openGateway(c)
	if err != nil {
		return err
	}
	defer gw.Close()
	tc, err := openTemporal(c)
	if err != nil {
		return err
	}
	defer tc.Close()
	var names []string
	for _, ref := range refs {
		if err := refuseUnknown(c.Context, gw, tc, ref); err != nil {
			return err
		}
		names = append(names, ref.String())
	}
	if !c.Bool("yes") {
		ok, err := confirm(c, "Delete "+strings.Join(names, ", ")+"?")
		if err != nil {
			return err
		}
		if !ok {
			fmt.Fprintln(c.App.Writer, "nothing deleted")
			return nil
		}
	}
	var all []error
	for _, stage := range deleteStages(refs) {
		targets, refused := doEach(c.Context, stage, func(ref Ref) ([]follow.Target, error) {
			return startDelete(c.Context, tc, ref)
		})
		all = append(append(all, refused...), followed(c, tc, targets...))
		if c.Context.Err() != nil {
			break
		}
	}
	return together(all...)
}

// deleteStages puts servers before what they use: volumes, networks and images are free
// only when their servers are gone.
func deleteStages(refs []Ref) [][]Ref {
	var servers, others []Ref
	for _, ref := range refs {
		if ref.Kind == manifest.KindServer {
			servers = append(servers, ref)
		} else {
			others = append(others, ref)
		}
	}
	return [][]Ref{servers, others}
}

// startDelete starts the delete of a resource; a busy one is cancelled first, by a
// workflow that goes on although we are gone.
func startDelete(ctx context.Context, tc client.Client, ref Ref) ([]follow.Target, error) {
	in := workflows.DeleteIn{Name: ref.Name, RequestedBy: requestedBy()}
	var next workflows.Operation
	switch ref.Kind {
	case manifest.KindServer:
		next.DeleteServer = &in
	case manifest.KindNetwork:
		next.DeleteNetwork = &in
	case manifest.KindVolume:
		next.DeleteVolume = &in
	case manifest.KindImage:
		next.DeleteImage = &in
	case manifest.KindPlaybook:
		next.DeletePlaybook = &in
	default:
		return nil, errs.NewPermanent(ref.String(), "delete", errs.Reason("a %s is not deleted this way", ref.Kind.Word()), "`burrow --help` lists the commands")
	}
	name, _ := next.Workflow()
	waits, there, err := takeOut(ctx, tc, ref)
	if err != nil || there {
		return []follow.Target{waits}, err
	}
	run, open, err := openRun(ctx, tc, ref.String())
	if err != nil {
		return nil, err
	}
	if open && run.kind == name {
		return []follow.Target{run.Target}, nil // somebody deletes it already: that is what was asked for
	}
	if !open {
		t, err := start(ctx, tc, ref.String(), "delete "+ref.String(), name, in)
		var exit *ExitError
		if err == nil || !errors.As(err, &exit) || exit.Code != ExitBusy {
			return []follow.Target{t}, err
		}
	}
	t, err := enqueue(ctx, tc, "cancel what runs on "+ref.String()+", then delete it",
		workflows.StartNextIn{Ref: ref.String(), Cancel: true, Next: next, RequestedBy: requestedBy()})
	return []follow.Target{t}, err
}

// takeOut cancels what waits in a resource's queue, and waits until it does no more. A
// delete that waits there stays: deletes says so.
func takeOut(ctx context.Context, tc client.Client, ref Ref) (waits follow.Target, deletes bool, err error) {
	run, open, err := openRun(ctx, tc, workflows.NextID(ref.String()))
	if err != nil || !open || workflows.IsDelete(run.next) {
		return run.Target, open && err == nil, err
	}
	if err := cancelRun(ctx, tc, ref, run); err != nil {
		return run.Target, false, err
	}
	// However it ended: what it has started by then is an open operation of the resource.
	_ = tc.GetWorkflow(ctx, run.ID, run.RunID).Get(ctx, nil)
	return run.Target, false, ctx.Err()
}
