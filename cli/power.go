package cli

import (
	"strings"

	ucli "github.com/urfave/cli/v2"
	"go.temporal.io/sdk/client"

	"burrow.dev/burrow/cli/follow"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/manifest"
	"burrow.dev/burrow/workflows"
)

const (
	// defaultGrace is how many seconds a guest may take to power off by itself.
	defaultGrace = 60
	// mostGrace is a day: longer is a mistake.
	mostGrace = 24 * 60 * 60
)

func startCommand() *ucli.Command {
	return powerCommand(workflows.PowerStart, "start a stopped server")
}

func stopCommand() *ucli.Command {
	return powerCommand(workflows.PowerStop, "power a server off: asked first, forced after its grace")
}

func restartCommand() *ucli.Command {
	return powerCommand(workflows.PowerRestart, "power a server off and start it again")
}

func powerCommand(action workflows.PowerAction, usage string) *ucli.Command {
	flags := []ucli.Flag{queueFlag(), detachFlag(), outputFlag("table", "json")}
	if action != workflows.PowerStart {
		flags = append(flags, &ucli.IntFlag{Name: "grace", Value: defaultGrace, Usage: "`SECONDS` the guest may take to power off by itself; 0 forces at once"})
	}
	return &ucli.Command{
		Name: string(action), Category: categoryOperations, Usage: usage, ArgsUsage: "[server] NAME ...", Flags: flags,
		Action: func(c *ucli.Context) error {
			if grace := c.Int("grace"); grace < 0 || grace > mostGrace {
				return usageErrorf(c, "--grace is %d; it takes seconds from 0 to %d", grace, mostGrace)
			}
			refs, err := serverRefs(c)
			if err != nil {
				return err
			}
			return operate(c, refs, func(tc client.Client, ref Ref) (follow.Target, error) {
				if err := refuseIfUnknown(c, tc, ref); err != nil {
					return follow.Target{}, err
				}
				return begin(c, tc, ref, string(action)+" "+ref.String(), workflows.Operation{PowerServer: &workflows.PowerServerIn{
					Name: ref.Name, Action: action, GraceSeconds: c.Int("grace"), RequestedBy: requestedBy(),
				}})
			})
		},
	}
}

// serverRefs takes servers, also by bare name: only they have power.
func serverRefs(c *ucli.Context) ([]Ref, error) {
	if c.NArg() > 0 {
		if _, err := manifest.ParseKind(kindWord(c.Args().First())); err != nil {
			var refs []Ref
			for _, name := range c.Args().Slice() {
				if err := manifest.CheckName(manifest.KindServer, name); err != nil {
					return nil, usageErrorf(c, "%v", err)
				}
				refs = append(refs, Ref{Kind: manifest.KindServer, Name: name})
			}
			return refs, nil
		}
	}
	refs, err := resourceArgs(c, 0)
	if err != nil {
		return nil, err
	}
	for _, ref := range refs {
		if ref.Kind != manifest.KindServer {
			return nil, errs.NewPermanent(ref.String(), c.Command.Name, errs.Reason("only servers take it"), "name a server")
		}
	}
	return refs, nil
}

// kindWord is what stands before the slash of KIND/NAME, or the whole word.
func kindWord(s string) string {
	kind, _, _ := strings.Cut(s, "/")
	return kind
}
