package addresses

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"
	"go4.org/netipx"
)

// event is one fact of a call about one register: an owner, which has an address or none, or
// an address, which has an owner, is reserved by a user, or is free. Both are "" for nothing.
type event struct {
	register string
	kind     kind
	// value is what the register was told to be or said to be.
	value string
	// maybe: nobody knows whether it happened, because the caller died or heard nothing.
	maybe bool
}

type kind string

const (
	becomes kind = "becomes" // value, from nothing or from value
	loses   kind = "loses"   // value, if it has it; "" is whatever it has
	is      kind = "is"      // value
)

// Values of an address that is reserved start with this; of an owner that has some address
// that nobody heard of, anyAddress.
const (
	reservedBy = "reserved/"
	anyAddress = "?"
	anybody    = reservedBy + "?"
)

// registers is the model: what each call does to a register, in one instant between its
// call and its return.
var registers = (&porcupine.NondeterministicModel{
	Init: func() []any { return []any{""} },
	Step: func(state, input, _ any) []any {
		now, e := state.(string), input.(event)
		var then any
		switch e.kind {
		case becomes:
			if now == "" || same(now, e.value) {
				then = e.value
				if e.value == anyAddress && now != "" {
					then = now
				}
			}
		case loses:
			then = now
			if e.value == "" || same(now, e.value) {
				then = ""
			}
		case is:
			if same(now, e.value) {
				then = now
				if now == anyAddress {
					then = e.value
				}
			}
		}
		switch {
		case e.maybe && then != nil:
			return []any{now, then}
		case e.maybe:
			return []any{now}
		case then == nil:
			return nil
		}
		return []any{then}
	},
	DescribeOperation: func(input, _ any) string { return fmt.Sprintf("%+v", input) },
}).ToModel()

// same compares values that may be only partly known.
func same(now, value string) bool {
	switch {
	case now == anyAddress, value == anyAddress:
		return now != "" && value != ""
	case value == anybody:
		return strings.HasPrefix(now, reservedBy)
	}
	return now == value
}

// history collects events by register.
type history struct {
	registers map[string][]porcupine.Operation
	calls     int
}

func (h *history) add(e event, client int, call, back int64) {
	if h.registers == nil {
		h.registers = map[string][]porcupine.Operation{}
	}
	h.registers[e.register] = append(h.registers[e.register], porcupine.Operation{ClientId: client, Input: e, Call: call, Return: back})
}

// read ends a history with what a register was found to be.
func (h *history) read(register, value string, at int64) {
	h.add(event{register: register, kind: is, value: value}, 0, at, at+1)
}

// check gives the registers whose history cannot have happened one call after the other.
func (h *history) check(timeout time.Duration) (broken []string) {
	var mu sync.Mutex
	var wg sync.WaitGroup
	turns := make(chan struct{}, 2)
	for register, ops := range h.registers {
		wg.Go(func() {
			turns <- struct{}{}
			defer func() { <-turns }()
			if got := porcupine.CheckOperationsTimeout(registers, ops, timeout); got != porcupine.Ok {
				mu.Lock()
				defer mu.Unlock()
				broken = append(broken, fmt.Sprintf("%s: %s", register, got))
			}
		})
	}
	wg.Wait()
	slices.Sort(broken)
	return broken
}

// tell gives the events of a register, for a person.
func (h *history) tell(register string) string {
	ops := slices.Clone(h.registers[register])
	slices.SortFunc(ops, func(a, b porcupine.Operation) int { return int(a.Call - b.Call) })
	var out strings.Builder
	for _, op := range ops {
		fmt.Fprintf(&out, "%d %d %+v client %d\n", op.Call, op.Return, op.Input, op.ClientId)
	}
	return out.String()
}

// at makes a call of a written history.
func at(when int64, c note, end note) call {
	c.At = when
	return call{note: c, end: end, back: when + 5}
}

// The checker must be able to fail: histories of what must never happen.
func TestTheCheckerRefusesBrokenHistories(t *testing.T) {
	a, b := netip.MustParseAddr("10.0.0.8"), netip.MustParseAddr("10.0.0.9")
	asks := func(server string) note { return note{Verb: allocate, Server: server, Slots: []int{0}} }
	gets := func(addr netip.Addr) note { return note{Ended: done, Addrs: []netip.Addr{addr}} }
	gives := func(server string) note { return note{Verb: release, Server: server} }
	holds := func(user string) note { return note{Verb: reserve, User: user, First: a, Last: a} }
	ok, lost := note{Ended: done}, note{Ended: unknown}
	s1, s2 := slotOwner("s1", 0), slotOwner("s2", 0)
	tests := map[string]struct {
		calls []call
		// found at the end; "" is nothing.
		register, value string
		want            []string
	}{
		"one after the other":             {calls: []call{at(0, asks("s1"), gets(a)), at(10, gives("s1"), ok), at(20, asks("s2"), gets(a))}, register: a.String(), value: s2},
		"same answer":                     {calls: []call{at(0, asks("s1"), gets(a)), at(10, asks("s1"), gets(a))}, register: s1, value: a.String()},
		"two owners":                      {calls: []call{at(0, asks("s1"), gets(a)), at(10, asks("s2"), gets(a))}, want: []string{a.String()}},
		"two owners at once":              {calls: []call{at(0, asks("s1"), gets(a)), at(1, asks("s2"), gets(a))}, want: []string{a.String()}},
		"another answer":                  {calls: []call{at(0, asks("s1"), gets(a)), at(10, asks("s1"), gets(b))}, want: []string{s1}},
		"two answers at once":             {calls: []call{at(0, asks("s1"), gets(a)), at(1, asks("s1"), gets(b))}, want: []string{s1}},
		"leaked":                          {calls: []call{at(0, asks("s1"), gets(a)), at(10, gives("s1"), ok)}, register: a.String(), value: s1, want: []string{a.String()}},
		"lost":                            {calls: []call{at(0, asks("s1"), gets(a))}, register: s1, want: []string{s1}},
		"a killed one's is found":         {calls: []call{at(0, asks("s1"), lost)}, register: s1, value: a.String()},
		"a killed one's is not found":     {calls: []call{at(0, asks("s1"), lost)}, register: s1},
		"a killed one's, before it began": {calls: []call{at(0, asks("s2"), note{Ended: taken, Addr: a, By: s1}), at(10, asks("s1"), lost)}, want: []string{a.String()}},
		"a killed one's answer changes":   {calls: []call{at(0, asks("s1"), lost), at(10, asks("s1"), gets(a)), at(20, asks("s1"), gets(b))}, want: []string{s1}},
		"a killed one's release":          {calls: []call{at(0, asks("s1"), gets(a)), at(10, gives("s1"), lost), at(20, asks("s2"), gets(a))}},
		"out of nothing":                  {register: a.String(), value: s1, want: []string{a.String()}},
		"taken by nobody":                 {calls: []call{at(0, note{Verb: allocate, Server: "s1", Slots: []int{2}, Static: a}, note{Ended: taken, Addr: a, By: s2})}, want: []string{a.String()}},
		"somebody else's release":         {calls: []call{at(0, asks("s1"), gets(a)), at(10, gives("s2"), ok), at(20, asks("s2"), gets(a))}, want: []string{a.String()}},
		"exhausted, and has one":          {calls: []call{at(0, asks("s1"), gets(a)), at(10, asks("s1"), note{Ended: exhausted})}, want: []string{s1}},
		"reserved and handed out":         {calls: []call{at(0, holds("alice"), ok), at(10, asks("s1"), gets(a))}, want: []string{a.String()}},
		"reserved while somebody has it":  {calls: []call{at(0, asks("s1"), gets(a)), at(10, holds("alice"), ok)}, want: []string{a.String()}},
		"reserved by two":                 {calls: []call{at(0, holds("alice"), ok), at(10, holds("bob"), ok)}, want: []string{a.String()}},
		"reserved and given back":         {calls: []call{at(0, holds("alice"), ok), at(10, note{Verb: unreserve, First: a, Last: b}, ok), at(20, asks("s1"), gets(a))}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			h := record(tt.calls)
			if tt.register != "" {
				h.read(tt.register, tt.value, 100)
			}
			var want []string
			for _, register := range tt.want {
				want = append(want, register+": Illegal")
			}
			require.Equal(t, want, h.check(time.Minute))
		})
	}
}

// wholePool is the range of a network in which the fault test reserves.
var wholePool = netipx.MustParseIPRange("10.0.0.0-10.0.0.127")
