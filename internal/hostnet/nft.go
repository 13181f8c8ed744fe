package hostnet

import (
	"context"
	"fmt"
	"net/netip"
	"sort"
	"strings"

	"burrow.dev/burrow/internal/errs"
)

// tableComment marks nftables tables as ours.
const tableComment = "made by burrow"

// namespaceRules is the firewall inside a network's namespace. Guests get DNS, DHCP and
// ping from it, and with NAT a way out; what is dialled from inside comes back.
func namespaceRules(nat bool, hostResolvers []netip.Addr) string {
	var b strings.Builder
	b.WriteString(replaceTable("inet") + `
	chain input {
		type filter hook input priority filter; policy drop;
		iifname "lo" accept
		ct state established,related accept
		iifname "gateway" meta l4proto { icmp, ipv6-icmp } accept
		iifname "gateway" udp dport { 53, 67, 547 } accept
		iifname "gateway" tcp dport 53 accept
	}
	chain forward {
		type filter hook forward priority filter; policy drop;
		ct state established,related accept
		iifname "gateway" oifname "gateway" accept
`)
	if nat {
		if len(hostResolvers) > 0 {
			// The host lets dnsmasq ask these; guests ask dnsmasq.
			fmt.Fprintf(&b, "\t\tip daddr %s drop\n", addressSet(hostResolvers))
		}
		b.WriteString("\t\tiifname \"gateway\" oifname \"uplink\" accept\n")
	}
	b.WriteString("\t}\n")
	if nat {
		b.WriteString(`	chain postrouting {
		type nat hook postrouting priority srcnat; policy accept;
		oifname "uplink" masquerade
	}
`)
	}
	b.WriteString("}\n")
	return b.String()
}

// uplinkRule is one NAT network as the host's firewall sees it.
type uplinkRule struct {
	device string
	subnet netip.Prefix
}

// hostRules is our table in the host's firewall: networks may leave through the host, and
// may not enter it, nor each other. Rules of others are not touched, and what they drop
// stays dropped.
func hostRules(uplinks []uplinkRule, hostResolvers []netip.Addr) string {
	if len(uplinks) == 0 {
		return deleteTable("inet")
	}
	sort.Slice(uplinks, func(i, j int) bool { return uplinks[i].device < uplinks[j].device })
	var devices, subnets []string
	for _, u := range uplinks {
		devices = append(devices, `"`+u.device+`"`)
		subnets = append(subnets, u.subnet.String())
	}
	ours := "{ " + strings.Join(devices, ", ") + " }"
	var b strings.Builder
	fmt.Fprintf(&b, `%s
	chain input {
		type filter hook input priority filter; policy accept;
		iifname %[2]s ct state established,related accept
`, replaceTable("inet"), ours)
	if len(hostResolvers) > 0 {
		fmt.Fprintf(&b, "\t\tiifname %s ip daddr %s meta l4proto { tcp, udp } th dport 53 accept\n", ours, addressSet(hostResolvers))
	}
	fmt.Fprintf(&b, `		iifname %[1]s drop
	}
	chain forward {
		type filter hook forward priority filter; policy accept;
		iifname %[1]s oifname %[1]s drop
	}
	chain postrouting {
		type nat hook postrouting priority srcnat; policy accept;
		ip saddr { %[2]s } oifname != %[1]s masquerade
	}
}
`, ours, strings.Join(subnets, ", "))
	return b.String()
}

// replaceTable opens the one definition of a table, atomically in the place of any other.
func replaceTable(family string) string {
	return deleteTable(family) + fmt.Sprintf("table %s burrow {\n\tcomment %q", family, tableComment)
}

// deleteTable deletes a table, or nothing.
func deleteTable(family string) string {
	return fmt.Sprintf("table %[1]s burrow { comment %[2]q; }\ndelete table %[1]s burrow\n", family, tableComment)
}

func addressSet(addresses []netip.Addr) string {
	var all []string
	for _, a := range addresses {
		all = append(all, a.String())
	}
	sort.Strings(all)
	return "{ " + strings.Join(all, ", ") + " }"
}

// nft applies rules in the calling thread's namespace, all or none.
func nft(ctx context.Context, rules string) error { return run(ctx, rules, "nft", "-f", "-") }

// hasTable tells whether our table is there, and refuses one of its name that somebody
// else made.
func hasTable(ctx context.Context, family string) (bool, error) {
	text, err := output(ctx, "", "nft", "list", "table", family, "burrow")
	if err != nil {
		if strings.Contains(err.Error(), "No such file or directory") {
			return false, nil
		}
		return false, err
	}
	if !strings.Contains(text, tableComment) {
		return true, fmt.Errorf("nftables table %s burrow: %w", family, errs.ErrNotManaged)
	}
	return true, nil
}

// claimTable makes sure, once a process, that a table may be taken for ours; whoever calls
// holds the lock.
func (s *Stack) claimTable(ctx context.Context, family string) error {
	if s.tables[family] {
		return nil
	}
	if _, err := hasTable(ctx, family); err != nil {
		return err
	}
	s.tables[family] = true
	return nil
}

// Guard keeps the host's own network stack away from a device on a userspace bridge: the
// kernel would also deliver what the bridge reads, and a guest could reach the host by
// the device's MAC. A device of a kernel bridge must not be guarded.
func (s *Stack) Guard(ctx context.Context, device string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.claimTable(ctx, "netdev")
	if err == nil {
		err = nft(ctx, fmt.Sprintf(`table netdev burrow {
	comment %q
	chain %[2]s {
		type filter hook ingress device "%[2]s" priority filter; policy drop;
	}
}
`, tableComment, device))
	}
	return refusal("device "+device, "keep it from the host", err)
}

// Unguard takes the guard of a device away; none is success.
func (s *Stack) Unguard(ctx context.Context, device string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	exists, err := hasTable(ctx, "netdev")
	if err == nil && exists {
		// Declared first, so that there is one to delete.
		err = nft(ctx, fmt.Sprintf("add chain netdev burrow %[1]s\ndelete chain netdev burrow %[1]s\n", device))
	}
	return refusal("device "+device, "take its guard away", err)
}
