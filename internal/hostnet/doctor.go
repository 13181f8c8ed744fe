package hostnet

import (
	"context"
	"encoding/json"
	"fmt"
)

// ForwardBlockers lists the chains of other firewalls that drop what nobody accepts on its
// way through the host ("ip filter FORWARD"), as Docker's does. A rule of ours cannot
// overrule them: guests of NAT networks reach nothing until their owner lets bwu+ through.
func ForwardBlockers(ctx context.Context) ([]string, error) {
	text, err := output(ctx, "", "nft", "--json", "list", "chains")
	if err != nil {
		return nil, refusal("firewall of this host", "list its chains", err)
	}
	found, err := forwardBlockers([]byte(text))
	return found, refusal("firewall of this host", "read its chains", err)
}

func forwardBlockers(text []byte) ([]string, error) {
	var listing struct {
		Objects []struct {
			Chain *struct {
				Family, Table, Name, Hook, Policy string
			} `json:"chain"`
		} `json:"nftables"`
	}
	if err := json.Unmarshal(text, &listing); err != nil {
		return nil, fmt.Errorf("read nft's listing: %w", err)
	}
	var found []string
	for _, o := range listing.Objects {
		if c := o.Chain; c != nil && c.Hook == "forward" && c.Policy == "drop" && c.Table != "burrow" {
			found = append(found, c.Family+" "+c.Table+" "+c.Name)
		}
	}
	return found, nil
}
