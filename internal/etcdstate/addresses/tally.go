package addresses

import (
	"strconv"

	"go.etcd.io/etcd/api/v3/mvccpb"

	"burrow.dev/burrow/internal/addrspace"
)

// tally adds up the usage of a network's subnets.
type tally struct {
	k       keys
	spaces  []*addrspace.Space
	subnets []addrspace.SubnetUsage
	// automatic is how many are used or in quarantine of those that are handed out unasked.
	automatic []addrspace.Count
}

func newTally(k keys, spaces []*addrspace.Space) *tally {
	t := &tally{k: k, spaces: spaces, automatic: make([]addrspace.Count, len(spaces))}
	for _, sp := range spaces {
		t.subnets = append(t.subnets, addrspace.SubnetUsage{Subnet: sp.Prefix, Size: sp.Hosts(), Reserved: sp.ReservedHosts()})
	}
	return t
}

// block adds the count of a block.
func (t *tally) block(kv *mvccpb.KeyValue) {
	n, err := strconv.Atoi(string(kv.Value))
	if i := t.k.subnet(t.spaces, kv); err == nil && i >= 0 {
		t.automatic[i] += addrspace.Count(n)
	}
}

// quarantined adds an address in quarantine, unless it was reserved meanwhile.
func (t *tally) quarantined(kv *mvccpb.KeyValue) {
	i := t.k.subnet(t.spaces, kv)
	addr, _ := t.k.addrOf(string(kv.Key))
	if i < 0 || t.spaces[i].Refuses(addr) != "" {
		return
	}
	t.subnets[i].Quarantined++
	if t.spaces[i].Automatic(addr) {
		t.automatic[i]++
	}
}

func (t *tally) sum() addrspace.Usage {
	for i, sp := range t.spaces {
		s := &t.subnets[i]
		s.Free = s.Size.Less(s.Used).Less(s.Reserved).Less(s.Quarantined)
		s.Automatic = sp.Size().Less(t.automatic[i])
	}
	return addrspace.Usage{Subnets: t.subnets}
}
