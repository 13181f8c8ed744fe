package cli

import (
	"errors"
	"fmt"

	"github.com/google/uuid"
	ucli "github.com/urfave/cli/v2"

	"burrow.dev/burrow/workflows"
)

// applyCommand builds what manifests declare.
func applyCommand() *ucli.Command {
	return &ucli.Command{
		Name:      "apply",
		Category:  categoryOperations,
		Usage:     "build or change what manifests declare, and follow it",
		ArgsUsage: "-f PATH ...",
		Description: "Validates everything first; nothing is touched when anything is wrong. What stands already as\n" +
			"declared is left alone; servers that differ are changed in the smallest steps, which --dry-run shows.\n" +
			"What cannot be changed is refused by name. Exit codes: 0 ready or nothing to do, 2 invalid, 4 busy, 5 failed,\n" +
			"6 held (waits for you), 130 stopped following (the operation goes on).",
		Flags: append(manifestFlags(),
			&ucli.BoolFlag{Name: "dry-run", Usage: "show what would be built and changed, and touch nothing; with Ansible here, check the playbooks' syntax"},
			&ucli.BoolFlag{Name: "restart", Usage: "restart servers whose change needs it"},
			queueFlag(), detachFlag(), outputFlag("table", "json")),
		Action: apply,
	}
}

func apply(c *ucli.Context) error {
	gw, err := openGateway(c)
	if err != nil {
		return err
	}
	defer gw.Close()
	known, err := knownTo(c.Context, gw)
	if err != nil {
		return err
	}
	set, err := checkManifests(c, known)
	if err != nil {
		return err
	}
	if c.Bool("dry-run") {
		problems, err := checkPlaybooks(c, set)
		if err = errors.Join(err, problems.Err()); err != nil {
			return err
		}
	}
	plan, err := makePlan(c.Context, set, known, c.Bool("restart"))
	if err != nil {
		return err
	}
	defer plan.close()
	if c.Bool("dry-run") {
		return plan.show(c)
	}
	plan.print(c.App.Writer)
	if len(plan.documents) == 0 {
		return nil
	}
	tc, err := openTemporal(c)
	if err != nil {
		return err
	}
	defer tc.Close()
	for _, doc := range plan.documents {
		if c.Bool("queue") {
			break // each waits for its turn
		}
		if err := busy(c.Context, tc, doc.Ref); err != nil {
			return err
		}
	}
	if err := plan.upload(c.Context, gw); err != nil {
		return err
	}
	plan.requestedBy(requestedBy())
	target, err := start(c.Context, tc, "apply/"+uuid.NewString()[:8], plan.summary(), workflows.NameApplyDocuments,
		workflows.ApplyIn{Documents: plan.documents, Queue: c.Bool("queue"), Restart: c.Bool("restart")})
	if err != nil {
		return err
	}
	if c.Bool("detach") {
		for _, doc := range plan.documents {
			fmt.Fprintf(c.App.Writer, "started %s; follow it with `burrow watch %s`\n", doc.Ref, doc.Ref)
		}
		return nil
	}
	return followed(c, tc, target)
}
