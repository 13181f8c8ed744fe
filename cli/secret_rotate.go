package cli

import (
	"fmt"
	"strings"

	ucli "github.com/urfave/cli/v2"

	"burrow.dev/burrow/internal/keyring"
)

func secretRotateCommand() *ucli.Command {
	return &ucli.Command{
		Name: "rotate-key", Usage: "make a new master key and encrypt all secrets under it, burrow's own too",
		Description: "The answering worker makes the key beside the old one. Every worker has to have it before anything\n" +
			"changes: on other machines, copy it to the path that is said, mode 0600, and run this again. No worker\n" +
			"is restarted. Interrupted, it changes nothing before the switch; after it, the next run does the rest.\n" +
			"Old keys stay where they are: backups made until now need them.",
		Flags: []ucli.Flag{
			&ucli.StringSliceFlag{Name: "without", Usage: "do not wait for the worker of `HOST`, which is down and will get the key later (may be given several times)"},
		},
		Action: func(c *ucli.Context) error {
			gw, err := openGateway(c)
			if err != nil {
				return err
			}
			defer func() { _ = gw.Close() }()
			asked := keyring.Rotation{By: requestedBy(), Without: c.StringSlice("without")}
			return gw.RotateKey(c.Context, asked, func(s keyring.Step) {
				if line := rotationLine(s); line != "" {
					fmt.Fprintln(c.App.Writer, line)
				}
			})
		},
	}
}

// rotationLine says a step; "" says nothing of it.
func rotationLine(s keyring.Step) string {
	switch s.Phase {
	case keyring.Resumes:
		return "an earlier rotation was interrupted: finishing the one to master key " + s.KeyID
	case keyring.Chosen:
		return "the new master key is " + s.KeyID + ": " + s.Place
	case keyring.Waits:
		return "waiting for it to be there too: " + strings.Join(s.Hosts, ", ")
	case keyring.Switched:
		return "every worker has it; it is in use from now on"
	case keyring.Done:
		return fmt.Sprintf("all secrets are under master key %s; %d were encrypted again\nkeep a copy of %s, and the old keys for backups made until now", s.KeyID, s.Done, s.Place)
	}
	return ""
}
