package hostnet

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
)

// ForwardBlockers lists the chains of other firewalls that drop what nobody accepts on its
// way through the host ("ip filter FORWARD"), as Docker's does. A rule of ours cannot
// overrule them: guests of NAT networks reach nothing until their owner lets bwu+ through,
// both ways. Chains whose table has rules that do are left out. It takes root.
func ForwardBlockers(ctx context.Context) ([]string, error) {
	text, err := output(ctx, "", "nft", "--json", "list", "ruleset")
	if err != nil {
		return nil, refusal("firewall of this host", "list its rules", err)
	}
	found, err := forwardBlockers([]byte(text))
	return found, refusal("firewall of this host", "read its rules", err)
}

func forwardBlockers(text []byte) ([]string, error) {
	var listing struct {
		Objects []struct {
			Chain *struct {
				Family, Table, Name, Hook, Policy string
			} `json:"chain"`
			Rule *struct {
				Family, Table string
				Expr          json.RawMessage
			} `json:"rule"`
		} `json:"nftables"`
	}
	if err := json.Unmarshal(text, &listing); err != nil {
		return nil, fmt.Errorf("read nft's listing: %w", err)
	}
	lets := map[string]bool{} // "ip filter iifname"
	for _, o := range listing.Objects {
		if r := o.Rule; r != nil && accepts(r.Expr) {
			for _, direction := range []string{"iifname", "oifname"} {
				if strings.Contains(string(r.Expr), `"`+direction+`"`) {
					lets[r.Family+" "+r.Table+" "+direction] = true
				}
			}
		}
	}
	var found []string
	for _, o := range listing.Objects {
		c := o.Chain
		if c == nil || c.Hook != "forward" || c.Policy != "drop" || c.Table == "burrow" {
			continue
		}
		table := c.Family + " " + c.Table
		if !lets[table+" iifname"] || !lets[table+" oifname"] {
			found = append(found, table+" "+c.Name)
		}
	}
	return found, nil
}

// accepts reports whether a rule, as nft lists it, lets our uplinks through.
func accepts(expr json.RawMessage) bool {
	return strings.Contains(string(expr), `"bwu`) && strings.Contains(string(expr), `"accept"`)
}
