package addresses

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"time"

	"burrow.dev/burrow/internal/addrspace"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/internal/etcdstate"
)

// plan decides which addresses one transaction hands out. It is pure: newPlan says what
// must be looked at, the caller fills in what is there, assign decides.
type plan struct {
	k     keys
	state *reading
	known map[string]int // free addresses of blocks that were read, by count key
	items []item

	// To look at.
	statics []netip.Addr
	blocks  []netip.Prefix
	bySpace map[*addrspace.Space][]netip.Prefix

	// What is there.
	owners      map[netip.Addr]string
	quarantined map[netip.Addr]bool
	busy        map[netip.Prefix]map[netip.Addr]bool

	// Decided.
	granted   []grant
	exhausted []item
	added     map[string]int        // by count key
	cursors   map[string]netip.Addr // by cursor key
	gaps      map[*addrspace.Space][]netip.Addr
	gone      map[netip.Addr]item // granted in this plan
}

// grant is an address for an item.
type grant struct {
	item   item
	prefix netip.Prefix
	value  string
	space  *addrspace.Space
}

// newPlan checks the items and chooses blocks with room for those that take any address.
func newPlan(k keys, state *reading, known map[string]int, items []item) *plan {
	p := &plan{
		k: k, state: state, known: known,
		bySpace: map[*addrspace.Space][]netip.Prefix{},
		owners:  map[netip.Addr]string{}, quarantined: map[netip.Addr]bool{}, busy: map[netip.Prefix]map[netip.Addr]bool{},
		added: map[string]int{}, cursors: map[string]netip.Addr{}, gaps: map[*addrspace.Space][]netip.Addr{}, gone: map[netip.Addr]item{},
	}
	need := map[*addrspace.Space]int{}
	for _, it := range items {
		if it.req.finished() {
			continue
		}
		if err := p.check(it.want); err != nil {
			it.req.fail(err)
			continue
		}
		if it.want.Static.IsValid() {
			p.statics = append(p.statics, it.want.Static)
		} else {
			need[state.spaces[it.want.Subnet]]++
		}
	}
	for _, it := range items {
		if !it.req.finished() {
			p.items = append(p.items, it)
		}
	}
	for sp, n := range need {
		budget := (etcdstate.MaxOps/2 - len(p.statics)) / len(need)
		p.bySpace[sp] = p.choose(sp, n, budget)
		p.blocks = append(p.blocks, p.bySpace[sp]...)
	}
	return p
}

func (p *plan) check(w addrspace.Want) error {
	if !w.Static.IsValid() {
		if w.Subnet < 0 || w.Subnet >= len(p.state.spaces) {
			return errs.NewPermanent("network "+p.k.uid, "allocate address", fmt.Errorf("%w: it has no subnet %d", errs.ErrInvalid, w.Subnet), "")
		}
		return nil
	}
	sp := p.state.spaceOf(w.Static)
	if sp == nil {
		return &addrspace.RefusedError{Addr: w.Static, Why: "it is in none of the network's subnets"}
	}
	if why := sp.Refuses(w.Static); why != "" {
		return &addrspace.RefusedError{Addr: w.Static, Why: why}
	}
	return nil
}

// assign gives addresses to whole requests, in order, as long as they fit into one
// transaction. Requests that ask for what cannot be had are failed here.
func (p *plan) assign(now time.Time) {
	p.findGaps()
	for first := 0; first < len(p.items); {
		end := first + 1
		for end < len(p.items) && p.items[end].req == p.items[first].req {
			end++
		}
		if !p.assignRequest(p.items[first:end], now) {
			return
		}
		first = end
	}
}

// assignRequest gives one request's items their addresses, all or none; first those that are
// asked for, so that the others do not take them. False: no more fits into this transaction.
func (p *plan) assignRequest(items []item, now time.Time) bool {
	var mine []grant
	items = slices.Clone(items)
	slices.SortStableFunc(items, func(a, b item) int {
		switch {
		case a.want.Static.IsValid() == b.want.Static.IsValid():
			return 0
		case a.want.Static.IsValid():
			return -1
		}
		return 1
	})
	before := maps.Clone(p.gaps)
	undo := func() {
		for _, g := range mine {
			delete(p.gone, g.prefix.Addr())
		}
		p.gaps = before
	}
	for _, it := range items {
		a, sp, err := p.pick(it)
		if errors.Is(err, errNotYet) {
			undo()
			return true
		}
		if err != nil {
			undo()
			it.req.fail(err)
			return true
		}
		if !a.IsValid() {
			undo()
			p.short(it, sp)
			return true
		}
		value, err := json.Marshal(owned{Owner: it.want.Owner, Since: now})
		if err != nil {
			undo()
			it.req.fail(errs.NewPermanent("address "+a.String(), "encode", err, ""))
			return true
		}
		p.gone[a] = it
		mine = append(mine, grant{it, netip.PrefixFrom(a, sp.Prefix.Bits()), string(value), sp})
	}
	if !p.fits(mine) {
		undo()
		return false
	}
	for _, g := range mine {
		a := g.prefix.Addr()
		if g.space.Automatic(a) {
			key := p.k.count(g.space.BlockOf(a))
			p.added[key]++
			if _, read := p.known[key]; read {
				p.known[key]--
			}
		}
		if !g.item.want.Static.IsValid() {
			next := a.Next()
			if !next.IsValid() {
				next = g.space.Prefix.Addr()
			}
			p.cursors[p.k.cursor(g.space.Prefix)] = next
		}
	}
	p.granted = append(p.granted, mine...)
	return true
}

// errNotYet: the answer depends on whether this transaction succeeds.
var errNotYet = errors.New("not yet decided")

// pick gives the address for an item; invalid when the blocks that were read have none left.
func (p *plan) pick(it item) (netip.Addr, *addrspace.Space, error) {
	w := it.want
	if a := w.Static; a.IsValid() {
		owner, taken := p.owners[a]
		if other, now := p.gone[a]; now {
			if other.req != it.req {
				return netip.Addr{}, nil, errNotYet
			}
			owner, taken = other.want.Owner, true
		}
		switch {
		case taken:
			return netip.Addr{}, nil, &addrspace.TakenError{Addr: a, Owner: owner}
		case p.quarantined[a]:
			return netip.Addr{}, nil, &addrspace.QuarantineError{Addr: a}
		}
		return a, p.state.spaceOf(a), nil
	}
	sp := p.state.spaces[w.Subnet]
	for len(p.gaps[sp]) > 0 {
		a := p.gaps[sp][0]
		p.gaps[sp] = p.gaps[sp][1:]
		if _, now := p.gone[a]; !now {
			return a, sp, nil
		}
	}
	return netip.Addr{}, sp, nil
}

// short decides about an item for which the blocks that were read have no address: with
// others to read, or after this transaction, it is tried again. Otherwise the subnet is
// full, or full but for quarantine.
func (p *plan) short(it item, sp *addrspace.Space) {
	unread, quarantined := false, 0
	p.eachBlock(sp, func(block netip.Prefix) bool {
		room := p.room(sp, block)
		gaps, read := p.known[p.k.count(block)]
		switch {
		case room <= 0:
		case read:
			quarantined += room - gaps
		default:
			unread = true
		}
		return !unread
	})
	switch {
	case len(p.granted) > 0 || unread:
	case quarantined > 0:
		it.req.fail(&addrspace.QuarantineError{})
	default:
		p.exhausted = append(p.exhausted, it)
	}
}

// fits reports whether a transaction has room for these as well: three comparisons an
// address, one a block, one each for the lock and the pool.
func (p *plan) fits(more []grant) bool {
	blocks := map[string]bool{}
	for key := range p.added {
		blocks[key] = true
	}
	for _, g := range more {
		blocks[p.k.count(g.space.BlockOf(g.prefix.Addr()))] = true
	}
	return 3*(len(p.granted)+len(more))+len(blocks)+2 <= etcdstate.MaxOps
}
