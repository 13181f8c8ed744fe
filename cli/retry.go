package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	ucli "github.com/urfave/cli/v2"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"burrow.dev/burrow/cli/follow"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/internal/gateway"
	"burrow.dev/burrow/manifest"
	"burrow.dev/burrow/workflows"
)

// retryCommand lets a held operation try its failed step again.
func retryCommand() *ucli.Command {
	return &ucli.Command{
		Name:      "retry",
		Category:  categoryOperations,
		Usage:     "let a held operation try again, also with an edited playbook",
		ArgsUsage: "KIND NAME | KIND/NAME",
		Flags: []ucli.Flag{
			&ucli.StringFlag{Name: "file", Aliases: []string{"f"}, Usage: "`PATH` of the edited playbook, of its folder, or of the manifest beside it"},
			leaveFlag(), outputFlag("table", "json"),
		},
		Action: func(c *ucli.Context) error {
			in := workflows.RetryIn{RequestedBy: requestedBy()}
			return decideOn(c, workflows.UpdateRetry, func(ref Ref) (any, error) {
				if path := c.String("file"); path != "" {
					if err := reviseFrom(c, ref, path, &in); err != nil {
						return nil, err
					}
				}
				return in, nil
			})
		},
	}
}

// skipCommand lets a held operation go on without its playbook.
func skipCommand() *ucli.Command {
	return decisionCommand("skip", "let a held operation go on without its playbook", workflows.UpdateSkip)
}

// abortCommand ends a held operation.
func abortCommand() *ucli.Command {
	return decisionCommand("abort", "give a held operation up and undo what it made", workflows.UpdateAbort)
}

func decisionCommand(name, usage, update string) *ucli.Command {
	return &ucli.Command{
		Name: name, Category: categoryOperations, Usage: usage, ArgsUsage: "KIND NAME | KIND/NAME",
		Flags: []ucli.Flag{leaveFlag(), outputFlag("table", "json")},
		Action: func(c *ucli.Context) error {
			err := decideOn(c, update, func(Ref) (any, error) {
				return workflows.DecisionIn{RequestedBy: requestedBy()}, nil
			})
			if update == workflows.UpdateAbort {
				return cancelled(c, err)
			}
			return err
		},
	}
}

// decideOn sends a decision to a held operation and follows what comes of it.
func decideOn(c *ucli.Context, update string, argument func(Ref) (any, error)) error {
	refs, err := resourceArgs(c, 1)
	if err != nil {
		return err
	}
	ref := refs[0]
	tc, err := openTemporal(c)
	if err != nil {
		return err
	}
	defer tc.Close()
	run, open, err := openRun(c.Context, tc, ref.String())
	if err != nil {
		return err
	}
	if !open {
		if err := refuseIfUnknown(c, tc, ref); err != nil {
			return err
		}
		return errs.New(errs.Permanent, ref.String(), update, errs.Reason("nothing is running on it"), "`burrow describe "+ref.String()+"` shows how it stands")
	}
	arg, err := argument(ref)
	if err != nil {
		return err
	}
	if err := send(c.Context, tc, run.Target, update, arg); err != nil {
		return err
	}
	return followed(c, tc, run.Target)
}

func send(ctx context.Context, tc client.Client, run follow.Target, update string, arg any) error {
	handle, err := tc.UpdateWorkflow(ctx, client.UpdateWorkflowOptions{
		WorkflowID: run.ID, RunID: run.RunID, UpdateName: update, Args: []any{arg},
		WaitForStage: client.WorkflowUpdateStageCompleted,
	})
	if err == nil {
		err = handle.Get(ctx, nil)
	}
	var missing *serviceerror.NotFound
	if errors.As(err, &missing) {
		return errs.New(errs.Permanent, run.ID, update, errs.Reason("its operation has just ended"), "`burrow describe "+run.ID+"` shows how")
	}
	if err != nil {
		return errs.New(errs.Permanent, run.ID, update, errs.Reason("%s", innermost(err)), "")
	}
	return nil
}

// innermost is the text a validator or handler gave, without Temporal's wrapping.
func innermost(err error) string {
	for next := errors.Unwrap(err); next != nil; next = errors.Unwrap(err) {
		err = next
	}
	return err.Error()
}

// reviseFrom packs an edited playbook: the server's document in a manifest, or a folder
// that takes the place of the one that was applied.
func reviseFrom(c *ucli.Context, ref Ref, path string, in *workflows.RetryIn) error {
	gw, err := openGateway(c)
	if err != nil {
		return err
	}
	defer gw.Close()
	p := &plan{}
	defer p.close()
	run, err := recordedRun(c.Context, gw, ref)
	if err != nil {
		return err
	}
	if doc, err := documentIn(c, ref, path, run); err != nil {
		return err
	} else if doc != nil {
		if in.Bundle, err = p.pack(c.Context, doc); err != nil {
			return err
		}
		in.Ansible, _ = doc.Ansible()
		return p.upload(c.Context, gw)
	}
	path = above(path, run.Playbook)
	if err := playbooksIn(ref, run, "retry", path); err != nil {
		return err
	}
	if in.Bundle, err = p.packAll(path); err != nil {
		return err
	}
	return p.upload(c.Context, gw)
}

// above is path without the file at its end, when that is one of files, which have a folder
// in common; else path.
func above(path string, files []string) string {
	whole := filepath.ToSlash(filepath.Clean(path))
	for _, file := range files {
		if whole == file {
			return "."
		}
		if dir, ok := strings.CutSuffix(whole, "/"+file); ok {
			return filepath.FromSlash(cmp.Or(dir, "/"))
		}
	}
	return path
}

// documentIn finds the resource's document in a manifest; nil when path is a playbook folder,
// or a playbook in one.
func documentIn(c *ucli.Context, ref Ref, path string, run manifest.Ansible) (*manifest.Document, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, errs.NewPermanent(ref.String(), "retry", err, "name the edited folder or manifest with -f")
	}
	set, problems := manifest.Load(c.Context, []string{path}, manifest.Options{})
	if doc := set.Find(ref.Kind, ref.Name); doc != nil {
		if run, _ := doc.Ansible(); run != nil {
			return doc, problems.Err()
		}
	}
	if info.IsDir() || above(path, run.Playbook) != path {
		return nil, nil
	}
	if err := problems.Err(); err != nil {
		return nil, err
	}
	return nil, errs.NewPermanent(ref.String(), "retry", errs.Reason("%s has no document %s with a playbook", path, ref), "name the edited folder or manifest with -f")
}

// recordedRun is what the resource was applied to run; nothing: it has no playbook.
func recordedRun(ctx context.Context, gw *gateway.Client, ref Ref) (manifest.Ansible, error) {
	rec, err := gw.Get(ctx, ref.Kind, ref.Name)
	if err != nil {
		return manifest.Ansible{}, err
	}
	if run, err := ansibleOf(rec); err == nil && run != nil {
		return *run, nil
	}
	return manifest.Ansible{}, nil
}

// playbooksIn checks that a folder has the files that the resource was applied with.
func playbooksIn(ref Ref, run manifest.Ansible, action, dir string) error {
	if run.Pull != nil {
		return errs.NewPermanent(ref.String(), action, errs.Reason("the guest fetches its playbook from %s, and takes no folder", run.Pull.URL),
			"push what is edited there, and leave the folder out")
	}
	if len(run.Playbook) == 0 {
		return errs.NewPermanent(ref.String(), action, errs.Reason("it has no playbook"), "name a playbook's file, or leave the folder out")
	}
	for _, name := range filesOf(run) {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			return errs.NewPermanent(ref.String(), action, fmt.Errorf("%s is not in %s", name, dir), "name the folder that holds the playbook")
		}
	}
	return nil
}

// ansibleOf is what a record's resource runs: a server's playbook, or a Playbook itself; nil: nothing.
func ansibleOf(rec manifest.Record) (*manifest.Ansible, error) {
	if rec.Kind == manifest.KindPlaybook {
		var spec manifest.PlaybookSpec
		return &spec.Ansible, json.Unmarshal(rec.Spec, &spec)
	}
	var spec manifest.ServerSpec
	err := json.Unmarshal(rec.Spec, &spec)
	return spec.Ansible, err
}
