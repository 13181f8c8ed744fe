package addresses

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// call is a call with its end; End is the zero note when its process was killed before.
type call struct {
	client int
	note
	end  note
	back int64 // when it has had its effect, if any
}

// record turns calls into events about owners and about addresses.
func record(calls []call) *history {
	h := &history{calls: len(calls)}
	l := lives{owners: map[netip.Addr]map[string]bool{}, gains: map[life][]call{}, releases: map[string][]call{}}
	for _, c := range calls {
		l.learn(c)
	}
	l.settle(calls)
	for _, c := range calls {
		add := func(register string, k kind, value string, maybe bool) {
			h.add(event{register, k, value, maybe}, c.client, c.Call(), c.back)
		}
		maybe := c.end.Ended != done
		switch c.Verb {
		case allocate:
			recordAllocate(c, l.owners, add)
		case release:
			for slot := range 3 {
				owner := slotOwner(c.Server, slot)
				add(owner, loses, "", maybe)
				for a, had := range l.owners {
					if had[owner] && l.matters(c, life{a, owner}) {
						add(a.String(), loses, owner, maybe)
					}
				}
			}
		case reserve, unreserve:
			if c.end.Ended == taken {
				add(c.end.Addr.String(), is, c.end.By, false)
			}
			for a := c.end.First; c.end.Ended == overlaps && !c.end.Last.Less(a); a = a.Next() {
				add(a.String(), is, reservedBy+c.end.By, false)
			}
			if c.end.Ended != done && c.end.Ended != unknown && c.end.Ended != "" {
				break
			}
			for a := c.First; !c.Last.Less(a); a = a.Next() {
				if c.Verb == reserve {
					add(a.String(), becomes, reservedBy+c.User, maybe)
				} else {
					add(a.String(), loses, anybody, maybe)
				}
			}
		}
	}
	return h
}

// life is an owner's time with an address.
type life struct {
	addr  netip.Addr
	owner string
}

// lives is who may have had which address when.
type lives struct {
	owners   map[netip.Addr]map[string]bool
	gains    map[life][]call   // calls that may have begun it
	releases map[string][]call // by server, those that ended well
}

func (l *lives) learn(c call) {
	knows := func(a netip.Addr, owner string) {
		if l.owners[a] == nil {
			l.owners[a] = map[string]bool{}
		}
		l.owners[a][owner] = true
	}
	for i, a := range c.end.Addrs {
		knows(a, slotOwner(c.Server, c.Slots[i]))
	}
	if c.end.Ended == taken {
		knows(c.end.Addr, c.end.By)
	}
	if c.Verb == release && c.end.Ended == done {
		l.releases[c.Server] = append(l.releases[c.Server], c)
	}
}

// settle notes the calls after which an owner may have an address that it is known to have had.
func (l *lives) settle(calls []call) {
	for _, c := range calls {
		if c.Verb != allocate {
			continue
		}
		for i, slot := range c.Slots {
			owner := slotOwner(c.Server, slot)
			switch c.end.Ended {
			case done:
				of := life{c.end.Addrs[i], owner}
				l.gains[of] = append(l.gains[of], c)
			case unknown, "":
				for a, had := range l.owners {
					if had[owner] {
						l.gains[life{a, owner}] = append(l.gains[life{a, owner}], c)
					}
				}
			}
		}
	}
}

// matters reports whether a release may have ended a life: one that came after another
// release, which came after all that may have begun it, has found nothing. Leaving those out
// changes no verdict, and without them a history has few calls at a time, which can be checked.
func (l *lives) matters(r call, of life) bool {
	return slices.ContainsFunc(l.gains[of], func(gain call) bool {
		return gain.Call() <= r.back && !slices.ContainsFunc(l.releases[r.Server], func(other call) bool {
			return other.Call() > gain.back && other.back < r.Call()
		})
	})
}

func (c call) Call() int64 { return c.At }

func recordAllocate(c call, owners map[netip.Addr]map[string]bool, add func(register string, k kind, value string, maybe bool)) {
	alone := len(c.Slots) == 1
	for i, slot := range c.Slots {
		owner := slotOwner(c.Server, slot)
		switch c.end.Ended {
		case done:
			add(owner, becomes, c.end.Addrs[i].String(), false)
			add(c.end.Addrs[i].String(), becomes, owner, false)
		case unknown, "":
			value := anyAddress
			if slot == staticSlot {
				value = c.Static.String()
			}
			add(owner, becomes, value, true)
			for a, had := range owners {
				if had[owner] && (slot != staticSlot || a == c.Static) { // else nobody has seen it
					add(a.String(), becomes, owner, true)
				}
			}
		case holds:
			if slot == staticSlot {
				add(owner, is, c.end.Addr.String(), false)
			}
		default: // refused: of several slots, nobody knows which
			if alone {
				add(owner, is, "", false)
			}
		}
	}
	switch c.end.Ended {
	case taken:
		add(c.end.Addr.String(), is, c.end.By, false)
	case reserved:
		add(c.end.Addr.String(), is, anybody, false)
	}
}

// readFinal ends a history with what etcd has.
func (p process) readFinal(t *testing.T, uid string, h *history) (owners map[string]netip.Addr) {
	t.Helper()
	k := keys{p.store, uid}
	now := time.Now().UnixNano()
	held, err := p.heldBy(t.Context(), k, []string{"s"})
	require.NoError(t, err)
	owners = map[string]netip.Addr{}
	found := map[string]string{}
	for _, x := range held {
		owners[x.owner] = x.prefix.Addr()
		found[x.owner], found[x.prefix.Addr().String()] = x.prefix.Addr().String(), x.owner
	}
	entry, _, err := p.entry(t.Context(), k)
	require.NoError(t, err)
	for _, r := range entry.Reserved {
		for a := r.First; !r.Last.Less(a); a = a.Next() {
			require.Empty(t, found[a.String()], "%s is reserved and has an owner", a)
			found[a.String()] = reservedBy + r.By
		}
	}
	for register, value := range found {
		h.read(register, value, now)
	}
	for register := range h.registers {
		if _, ok := found[register]; !ok {
			h.read(register, "", now)
		}
	}
	return owners
}
