package cli

import (
	"fmt"

	ucli "github.com/urfave/cli/v2"

	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/manifest"
)

// sshConfigCommand prints what plain ssh, scp and rsync need.
func sshConfigCommand() *ucli.Command {
	return &ucli.Command{
		Name: "ssh-config", Category: categoryServers, Usage: "print an ssh configuration for a server, for scp and rsync", ArgsUsage: "[server] NAME",
		Description: "  burrow ssh-config db >> ~/.ssh/config && scp file db:\n" +
			"You log in with your own key, one of those the server's spec.auth names. Host keys are asked of burrow at\n" +
			"each connection, so a server that was built anew is known again.",
		Action: func(c *ucli.Context) error {
			name, _, err := serverArg(c)
			if err != nil {
				return err
			}
			rec, err := serverRecord(c, name)
			if err != nil {
				return err
			}
			self, err := selfCommand(c)
			if err != nil {
				return err
			}
			w := c.App.Writer
			fmt.Fprintf(w, "Host %s\n", name)
			if rec.Status.Login != "" {
				fmt.Fprintf(w, "    User %s\n", rec.Status.Login)
			}
			_, err = fmt.Fprintf(w, "    ProxyCommand %[1]s dial %[2]s %%p\n    KnownHostsCommand %[1]s host-keys %[2]s\n"+
				"    HostKeyAlias %[2]s\n    UserKnownHostsFile /dev/null\n    GlobalKnownHostsFile /dev/null\n    StrictHostKeyChecking yes\n    CheckHostIP no\n    ControlPath none\n",
				self, name)
			return err
		},
	}
}

// hostKeysCommand is the KnownHostsCommand of ssh-config's output.
func hostKeysCommand() *ucli.Command {
	return &ucli.Command{
		Name: "host-keys", Category: categoryServers, Hidden: true, Usage: "print a server's pinned host keys as known hosts", ArgsUsage: "NAME",
		Action: func(c *ucli.Context) error {
			name, _, err := serverArg(c)
			if err != nil {
				return err
			}
			rec, err := serverRecord(c, name)
			if err != nil {
				return err
			}
			for _, key := range rec.Status.HostKeys {
				if _, err := fmt.Fprintf(c.App.Writer, "%s %s\n", name, key); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

// serverRecord reads one server that has its host keys.
func serverRecord(c *ucli.Context, name string) (manifest.Record, error) {
	gw, err := openGateway(c)
	if err != nil {
		return manifest.Record{}, err
	}
	defer func() { _ = gw.Close() }()
	rec, err := gw.Get(c.Context, manifest.KindServer, name)
	if err == nil && len(rec.Status.HostKeys) == 0 {
		err = errs.New(errs.Transient, "server/"+name, "log in", errs.Reason("it has no host key yet (it is %s)", rec.Status.Phase),
			"follow it until it is ready: burrow watch server/"+name)
	}
	return rec, err
}
