package addresses

import (
	"net/netip"

	"go4.org/netipx"

	"burrow.dev/burrow/internal/addrspace"
)

// choose gives the blocks to read for n addresses of a subnet, from the cursor on: those
// with room by their count for n, and one more when some of it may be in quarantine: of a
// nearly full network, reading a block costs more than the rest of the request.
func (p *plan) choose(sp *addrspace.Space, n, budget int) []netip.Prefix {
	var out []netip.Prefix
	p.eachBlock(sp, func(block netip.Prefix) bool {
		room := p.room(sp, block)
		if gaps, read := p.known[p.k.count(block)]; read {
			room = min(room, gaps)
		}
		if room <= 0 {
			return true
		}
		out = append(out, block)
		enough := n <= 0 || n <= room && !p.state.resting
		n -= room
		return !enough && len(out) < budget
	})
	return out
}

// room is how many addresses of a block are free, by its count.
func (p *plan) room(sp *addrspace.Space, block netip.Prefix) int {
	return sp.Capacity(block) - p.state.used[p.k.count(block)]
}

// eachBlock visits all blocks of a subnet once, from the cursor on, while visit says so.
// It costs no request: empty blocks have no count, and a full one is one look into a map.
func (p *plan) eachBlock(sp *addrspace.Space, visit func(netip.Prefix) bool) {
	start, ok := sp.BlockFrom(p.state.cursors[p.k.cursor(sp.Prefix)])
	if !ok {
		if start, ok = sp.BlockFrom(sp.Prefix.Addr()); !ok {
			return // nothing to hand out at all
		}
	}
	for block := start; visit(block); {
		next, ok := sp.BlockFrom(netipx.PrefixLastIP(block).Next())
		if !ok {
			next, _ = sp.BlockFrom(sp.Prefix.Addr())
		}
		if block = next; block == start {
			return
		}
	}
}

// findGaps lists the free addresses of the blocks that were read, in the order in which
// they are tried: in the cursor's block from the cursor on, then its beginning.
func (p *plan) findGaps() {
	for sp, blocks := range p.bySpace {
		cursor := p.state.cursors[p.k.cursor(sp.Prefix)]
		for i, block := range blocks {
			var before, after []netip.Addr
			for _, r := range sp.Within(block) {
				for a := r.From(); a.IsValid() && !r.To().Less(a); a = a.Next() {
					switch {
					case p.busy[block][a]:
					case i == 0 && a.Less(cursor):
						before = append(before, a)
					default:
						after = append(after, a)
					}
				}
			}
			p.known[p.k.count(block)] = len(before) + len(after)
			p.gaps[sp] = append(append(p.gaps[sp], after...), before...)
		}
	}
}
