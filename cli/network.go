package cli

import (
	"fmt"
	"net/netip"
	"strings"

	ucli "github.com/urfave/cli/v2"
	"go4.org/netipx"

	"burrow.dev/burrow/internal/gateway"
	"burrow.dev/burrow/manifest"
)

// networkCommand groups what concerns the addresses of networks.
func networkCommand() *ucli.Command {
	return &ucli.Command{
		Name: "network", Aliases: []string{"net"}, Category: categoryResources, Usage: "show who has which address of a network, and reserve some",
		Subcommands: []*ucli.Command{
			networkIPsCommand(),
			networkReserveCommand(),
			networkUnreserveCommand(),
		},
	}
}

func networkReserveCommand() *ucli.Command {
	return &ucli.Command{
		Name: "reserve", Usage: "keep addresses of a network from being given to servers", ArgsUsage: "NETWORK ADDRESS|FIRST-LAST|CIDR",
		Description: "For what burrow does not know of: a printer, a virtual address, another DHCP server's range. Any worker\n" +
			"answers. It lasts until `burrow network unreserve` or the network's end; what always holds belongs\n" +
			"into the manifest, subnets[].reserved. The same range again takes the new comment.",
		Flags: []ucli.Flag{&ucli.StringFlag{Name: "comment", Usage: "`TEXT` that says what they are for"}},
		Action: func(c *ucli.Context) error {
			return onRange(c, "reserved", func(gw *gateway.Client, network string, r netipx.IPRange) error {
				return gw.ReserveAddresses(c.Context, network, r, c.String("comment"), requestedBy())
			})
		},
	}
}

func networkUnreserveCommand() *ucli.Command {
	return &ucli.Command{
		Name: "unreserve", Usage: "let reserved addresses of a network be given to servers again", ArgsUsage: "NETWORK ADDRESS|FIRST-LAST|CIDR",
		Description: "It may be a part of what was reserved; the rest stays. What is not reserved is left as it is.",
		Action: func(c *ucli.Context) error {
			return onRange(c, "not reserved", func(gw *gateway.Client, network string, r netipx.IPRange) error {
				return gw.UnreserveAddresses(c.Context, network, r)
			})
		},
	}
}

// onRange does something to a range of a network, and says how it is after.
func onRange(c *ucli.Context, after string, do func(gw *gateway.Client, network string, r netipx.IPRange) error) error {
	if c.NArg() != 2 {
		return usageErrorf(c, "name a network, and an address, FIRST-LAST or a CIDR")
	}
	network, err := networkName(c, c.Args().Get(0))
	if err != nil {
		return err
	}
	r, err := parseAddresses(c.Args().Get(1))
	if err != nil {
		return usageErrorf(c, "%w", err)
	}
	gw, err := openGateway(c)
	if err != nil {
		return err
	}
	defer func() { _ = gw.Close() }()
	if err := do(gw, network, r); err != nil {
		return near(c.Context, gw, Ref{manifest.KindNetwork, network}, err)
	}
	fmt.Fprintf(c.App.Writer, "%s: %s is %s\n", manifest.Ref(manifest.KindNetwork, network), c.Args().Get(1), after)
	return nil
}

// networkName reads NAME or network/NAME.
func networkName(c *ucli.Context, word string) (string, error) {
	if !strings.Contains(word, "/") {
		return word, nil
	}
	kind, name, err := manifest.ParseKindName(word)
	if err != nil {
		return "", usageErrorf(c, "%w", err)
	}
	if kind != manifest.KindNetwork {
		return "", usageErrorf(c, "it takes a network, and %s is a %s", name, kind.Word())
	}
	return name, nil
}

// parseAddresses reads ADDRESS, FIRST-LAST or CIDR.
func parseAddresses(text string) (netipx.IPRange, error) {
	if strings.Contains(text, "/") {
		p, err := netip.ParsePrefix(text)
		if err != nil {
			return netipx.IPRange{}, fmt.Errorf("%q is no CIDR", text)
		}
		if p != p.Masked() {
			return netipx.IPRange{}, fmt.Errorf("%s is an address in %s; write one of them", text, p.Masked())
		}
		return netipx.RangeOfPrefix(p), nil
	}
	from, to, found := strings.Cut(text, "-")
	if !found {
		to = from
	}
	first, err1 := netip.ParseAddr(strings.TrimSpace(from))
	last, err2 := netip.ParseAddr(strings.TrimSpace(to))
	switch {
	case err1 != nil || err2 != nil || first.Zone() != "" || last.Zone() != "":
		return netipx.IPRange{}, fmt.Errorf("%q is no address, FIRST-LAST or CIDR", text)
	case first.Is4() != last.Is4():
		return netipx.IPRange{}, fmt.Errorf("%s begins with one kind of address and ends with another", text)
	case last.Less(first):
		return netipx.IPRange{}, fmt.Errorf("%s ends before it begins", text)
	}
	return netipx.IPRangeFrom(first, last), nil
}
