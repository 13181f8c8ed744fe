package cli

import (
	"context"
	"fmt"
	"strings"

	ucli "github.com/urfave/cli/v2"
	"go.temporal.io/sdk/client"

	"burrow.dev/burrow/cli/follow"
	"burrow.dev/burrow/internal/gateway"
	"burrow.dev/burrow/workflows"
)

// rebuildCommand builds servers anew.
func rebuildCommand() *ucli.Command {
	return &ucli.Command{
		Name:      "rebuild",
		Category:  categoryOperations,
		Usage:     "build a server anew on a new boot disk, from its image or another",
		ArgsUsage: "[server] NAME ...",
		Description: "It stays the same server: addresses, MACs, host keys, and its data disks with what is on them. What is on\n" +
			"the boot disk is gone when the new server is ready; until then the old one is kept, and comes back when\n" +
			"the rebuild fails, is cancelled or aborted.",
		Flags: []ucli.Flag{
			&ucli.StringFlag{Name: "image", Usage: "another `IMAGE`, declared from now on; default: the one that is declared"},
			&ucli.BoolFlag{Name: "yes", Aliases: []string{"y"}, Usage: "do not ask"},
			queueFlag(), detachFlag(), outputFlag("table", "json"),
		},
		Action: rebuildServers,
	}
}

func rebuildServers(c *ucli.Context) error {
	refs, err := serverRefs(c)
	if err != nil {
		return err
	}
	gw, err := openGateway(c)
	if err != nil {
		return err
	}
	defer gw.Close()
	if err := thereAre(c.Context, gw, refs); err != nil {
		return err
	}
	if !c.Bool("yes") {
		var names []string
		for _, ref := range refs {
			names = append(names, ref.String())
		}
		ok, err := confirm(c, "Rebuild "+strings.Join(names, ", ")+"? What is on the boot disk is lost; data disks stay.")
		if err != nil {
			return err
		}
		if !ok {
			fmt.Fprintln(c.App.Writer, "nothing rebuilt")
			return nil
		}
	}
	return operate(c, refs, func(tc client.Client, ref Ref) (follow.Target, error) {
		return begin(c, tc, ref, "rebuild "+ref.String(), workflows.Operation{Rebuild: &workflows.RebuildServerIn{
			Name: ref.Name, Image: c.String("image"), RequestedBy: requestedBy(),
		}})
	})
}

// thereAre refuses resources that are not there, before anything is asked or started.
func thereAre(ctx context.Context, gw *gateway.Client, refs []Ref) error {
	for _, ref := range refs {
		if _, err := look(ctx, gw, ref); err != nil {
			return err
		}
	}
	return nil
}
