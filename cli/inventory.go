package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	ucli "github.com/urfave/cli/v2"

	"burrow.dev/burrow/internal/ansiblex"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/manifest"
)

// inventoryCommand is burrow as an inventory of the user's own Ansible.
func inventoryCommand() *ucli.Command {
	return &ucli.Command{
		Name: "inventory", Category: categoryServers, Usage: "give Ansible its inventory: all servers, for Ansible in your own shell", ArgsUsage: " ",
		Description: "--list and --host are what Ansible asks an inventory script; with --plugin there is an inventory\n" +
			"plugin, which takes keyed_groups, compose and groups too:\n" +
			"  burrow inventory --plugin ~/.ansible/plugins/inventory\n" +
			"  echo 'plugin: burrow' > burrow.yml\n" +
			"  ansible -i burrow.yml label_role_web -m ping\n" +
			"Groups: burrow, label_KEY_VALUE, network_NAME, image_NAME, host_NAME, phase_NAME. Servers are reached as\n" +
			"burrow ssh reaches them: isolated networks too, host keys checked, no key of yours needed.\n" +
			"--for shows what a run of burrow's own has: your inventory from the folder that was applied, and burrow's\n" +
			"after it, with the files of yours whose connection variables it overrides.",
		Flags: []ucli.Flag{
			&ucli.BoolFlag{Name: "list", Usage: "print all groups, hosts and variables as JSON"},
			&ucli.StringFlag{Name: "host", Usage: "print the variables of the server `NAME` as JSON"},
			&ucli.StringFlag{Name: "plugin", TakesFile: true, Usage: "write the inventory plugin into `DIR`"},
			&ucli.StringFlag{Name: "for", Usage: "show the inventory that a run for the server `NAME` has, or for playbook/NAME"},
			&ucli.StringFlag{Name: "selector", Aliases: []string{"l"}, Usage: "list only what has these `LABELS`: key=value,key"},
			outputFlag("text", "json"),
		},
		Action: func(c *ucli.Context) error {
			var do []func(*ucli.Context) error
			for name, action := range map[string]func(*ucli.Context) error{"list": listInventory, "host": hostInventory, "plugin": writeInventoryPlugin, "for": runInventory} {
				if c.IsSet(name) {
					do = append(do, action)
				}
			}
			if len(do) != 1 || c.NArg() > 0 {
				return usageErrorf(c, "say one of --list, --host NAME, --plugin DIR, --for NAME")
			}
			return do[0](c)
		},
	}
}

func listInventory(c *ucli.Context) error {
	sel, err := parseSelector(c.String("selector"))
	if err != nil {
		return usageErrorf(c, "%w", err)
	}
	access, err := accessFor(c)
	if err != nil {
		return err
	}
	gw, err := openGateway(c)
	if err != nil {
		return err
	}
	defer gw.Close()
	var hosts []ansiblex.Host
	err = gw.Each(c.Context, manifest.KindServer, func(rec manifest.Record) error {
		if !sel.matches(rec.Metadata.Labels) {
			return nil
		}
		host, err := inventoryHost(rec)
		hosts = append(hosts, host)
		return err
	})
	if err != nil {
		return err
	}
	slices.SortFunc(hosts, func(a, b ansiblex.Host) int { return strings.Compare(a.Name, b.Name) })
	return printJSON(c.App.Writer, ansiblex.Script(hosts, access))
}

// hostInventory answers {} for a host that is none of burrow's, as Ansible expects.
func hostInventory(c *ucli.Context) error {
	access, err := accessFor(c)
	if err != nil {
		return err
	}
	gw, err := openGateway(c)
	if err != nil {
		return err
	}
	defer gw.Close()
	rec, err := gw.Get(c.Context, manifest.KindServer, c.String("host"))
	if errors.Is(err, errs.ErrNotFound) {
		return printJSON(c.App.Writer, struct{}{})
	}
	if err != nil {
		return err
	}
	host, err := inventoryHost(rec)
	if err != nil {
		return err
	}
	return printJSON(c.App.Writer, ansiblex.ScriptHost(host, access(host)))
}

// inventoryHost is a record as an inventory knows it.
func inventoryHost(rec manifest.Record) (ansiblex.Host, error) {
	var spec struct {
		Image string `json:"mmImage"`
	}
	if err := json.Unmarshal(rec.Spec, &spec); err != nil {
		return ansiblex.Host{}, fmt.Errorf("read the spec of server/%s: %w", rec.Metadata.Name, err)
	}
	h := ansiblex.Host{
		Name: rec.Metadata.Name, UID: rec.Metadata.UID, Login: rec.Status.Login, HostKeys: rec.Status.HostKeys,
		Labels: rec.Metadata.Labels, Image: spec.Image, Hypervisor: rec.Status.Host, Phase: string(rec.Status.Phase),
	}
	for _, port := range rec.Status.Ports {
		if !slices.Contains(h.Networks, port.Network) {
			h.Networks = append(h.Networks, port.Network)
		}
		for _, a := range port.Addresses {
			if prefix, err := netip.ParsePrefix(a); err == nil {
				h.Addresses = append(h.Addresses, prefix.Addr().String())
			}
		}
	}
	if len(h.Addresses) > 0 {
		h.Address = h.Addresses[0]
	}
	return h, nil
}

// accessFor says how Ansible in this user's shell reaches servers: by this program.
func accessFor(c *ucli.Context) (func(ansiblex.Host) ansiblex.Access, error) {
	self, err := selfCommand(c)
	if err != nil {
		return nil, err
	}
	return func(h ansiblex.Host) ansiblex.Access {
		access := ansiblex.Access{KnownHosts: self + " host-keys " + h.Name}
		dial := " dial "
		if socket := agentSocketOf(h.UID); socket != "" {
			access.Agent = socket
			dial = " dial --agent " + shellWord(socket) + " "
		}
		access.Proxy = self + dial + h.Name + " %p"
		return access
	}, nil
}
