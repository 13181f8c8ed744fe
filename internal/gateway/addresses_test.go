package gateway

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go4.org/netipx"

	"burrow.dev/burrow/internal/addrspace"
	"burrow.dev/burrow/internal/config"
	"burrow.dev/burrow/internal/devstacktest"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/internal/etcdstate"
	"burrow.dev/burrow/internal/etcdstate/addresses"
	"burrow.dev/burrow/manifest"
)

// newPool is a network's address pool in a real etcd, with the network's record.
func newPool(t *testing.T, subnets ...manifest.Subnet) (*addresses.Allocator, *store) {
	t.Helper()
	state, err := etcdstate.Open(config.Etcd{Endpoints: []string{devstacktest.Etcd(t)}}, etcdstate.Options{})
	require.NoError(t, err)
	pool := addresses.New(state, addresses.Options{})
	t.Cleanup(func() {
		pool.Close()
		require.NoError(t, state.Close())
	})
	status := manifest.NetworkStatus{Mode: manifest.ModeNAT, Subnets: subnets}
	_, err = pool.Settle(t.Context(), "net-uid", "lan", func([]addrspace.Entry) (manifest.NetworkStatus, error) { return status, nil })
	require.NoError(t, err)
	rec := manifest.Record{APIVersion: manifest.APIVersion, Kind: manifest.KindNetwork, Spec: json.RawMessage(`{}`)}
	rec.Metadata.Name, rec.Metadata.UID, rec.Status.Network = "lan", "net-uid", &status
	return pool, &store{records: []manifest.Record{rec, server("db")}}
}

func TestAddressesAreListedWithTheNamesOfWhoHasThem(t *testing.T) {
	pool, records := newPool(t, manifest.Subnet{CIDR: "10.0.0.0/24", Gateway: "10.0.0.1", Reserved: []string{"10.0.0.200-10.0.0.209"}}, manifest.Subnet{CIDR: "fd00::/48", Gateway: "none"})
	ctx := t.Context()
	_, err := pool.Allocate(ctx, "net-uid", []addrspace.Want{
		{Owner: "uid-of-db/lan-0/0", Static: netip.MustParseAddr("10.0.0.7")},
		{Owner: "uid-of-db/lan-0/1", Subnet: 1},
		{Owner: "uid-of-old/lan-0/0", Static: netip.MustParseAddr("10.0.0.9")},
		{Owner: "uid-of-lost/lan-0/0", Static: netip.MustParseAddr("10.0.0.8")},
	})
	require.NoError(t, err)
	require.NoError(t, pool.Release(ctx, "net-uid", "uid-of-old/"))
	d := deps(t, records)
	d.Addresses = pool
	c := connect(t, serve(t, d))
	require.NoError(t, c.ReserveAddresses(ctx, "lan", netipx.MustParseIPRange("10.0.0.64-10.0.0.127"), "printers", "alice"))

	var totals []SubnetUsage
	var all []string
	list := func() {
		all = nil
		require.NoError(t, c.ListAddresses(ctx, "lan", func(s []SubnetUsage) error { totals = s; return nil }, func(a Address) error {
			line := a.First
			if a.Last != a.First {
				line += "-" + a.Last
			}
			all = append(all, strings.TrimSpace(line+" "+a.State+" "+a.Owner+" "+a.Comment))
			require.Equal(t, a.State == "quarantined", !a.Until.IsZero(), line)
			return nil
		}))
	}
	list()
	require.Equal(t, []string{
		"10.0.0.1 used gateway",
		"10.0.0.7 used server/db lan-0",
		"10.0.0.8 used a server that is gone, uid uid-of-lost lan-0",
		"10.0.0.9 quarantined a server that is gone, uid uid-of-old lan-0",
		"10.0.0.64-10.0.0.127 reserved alice printers",
		"10.0.0.200-10.0.0.209 reserved manifest",
		"fd00::1 used server/db lan-0",
	}, all)
	require.Equal(t, []SubnetUsage{
		{Subnet: "10.0.0.0/24", Size: "253", Used: "2", Reserved: "74", Quarantined: "1", Free: "176"},
		{Subnet: "fd00::/48", Size: "more than 2^64", Used: "1", Reserved: "0", Quarantined: "0", Free: "more than 2^64"},
	}, totals)

	require.NoError(t, c.UnreserveAddresses(ctx, "lan", netipx.MustParseIPRange("10.0.0.64-10.0.0.126")))
	list()
	require.Contains(t, all, "10.0.0.127 reserved alice printers")
	enough := errors.New("enough")
	require.ErrorIs(t, c.ListAddresses(ctx, "lan", func([]SubnetUsage) error { return enough }, nil), enough)
}

func TestWhatCannotBeReservedIsExplained(t *testing.T) {
	pool, records := newPool(t, manifest.Subnet{CIDR: "10.0.0.0/24", Gateway: "10.0.0.1", Reserved: []string{"10.0.0.200-10.0.0.209"}})
	ctx := t.Context()
	_, err := pool.Allocate(ctx, "net-uid", []addrspace.Want{{Owner: "uid-of-db/lan-0/0", Static: netip.MustParseAddr("10.0.0.7")}})
	require.NoError(t, err)
	d := deps(t, records)
	d.Addresses = pool
	c := connect(t, serve(t, d))
	reserve := func(text, by string) error {
		return c.ReserveAddresses(ctx, "lan", netipx.MustParseIPRange(text), "", by)
	}
	require.NoError(t, reserve("10.0.0.50-10.0.0.60", "alice"))
	for text, want := range map[string]string{
		"10.0.0.5-10.0.0.9":     "network/lan: reserve 10.0.0.5-10.0.0.9: already exists: 10.0.0.7 is in use by server/db lan-0",
		"10.0.0.60-10.0.0.61":   "alice reserved 10.0.0.50-10.0.0.60; burrow network unreserve lan 10.0.0.50-10.0.0.60",
		"10.0.0.1-10.0.0.1":     "the gateway; its subnets are 10.0.0.0/24",
		"10.0.1.0-10.0.1.9":     "its subnets are 10.0.0.0/24",
		"10.0.0.250-10.0.1.9":   "outside the subnet",
		"10.0.0.205-10.0.0.205": "reserved",
		"fd00::1-fd00::2":       "its subnets are 10.0.0.0/24",
	} {
		err := reserve(text, "bob")
		require.ErrorContains(t, err, want, text)
		require.Equal(t, errs.Permanent, errs.ClassOf(err), text)
	}
	for comment, want := range map[string]string{"caf\xe9": "UTF-8", strings.Repeat("x", 1000): "at most 400"} {
		err := c.ReserveAddresses(ctx, "lan", netipx.MustParseIPRange("10.0.0.20-10.0.0.21"), comment, "bob")
		require.ErrorIs(t, err, errs.ErrInvalid)
		require.ErrorContains(t, err, want)
		require.ErrorContains(t, err, "another comment", "it says what to do")
	}
	require.ErrorIs(t, c.UnreserveAddresses(ctx, "none", netipx.MustParseIPRange("10.0.0.5-10.0.0.5")), errs.ErrNotFound)
	require.ErrorIs(t, c.ListAddresses(ctx, "none", nil, nil), errs.ErrNotFound)
}

func TestWhoReservesIsWrittenDownAsPlainText(t *testing.T) {
	pool, records := newPool(t, manifest.Subnet{CIDR: "10.0.0.0/24", Gateway: "none", Reserved: []string{"10.0.0.9"}})
	d := deps(t, records)
	d.Addresses = pool
	c := connect(t, serve(t, d))
	by := map[string]string{"10.0.0.5": addrspace.ByManifest, "10.0.0.6": "a\x1b[31mb\nc", "10.0.0.7": strings.Repeat("x", 4096)}
	for addr, name := range by {
		require.NoError(t, c.ReserveAddresses(t.Context(), "lan", netipx.MustParseIPRange(addr+"-"+addr), "", name))
	}
	got := map[string]string{}
	require.NoError(t, pool.EachAddress(t.Context(), "net-uid", func(h addrspace.Holding) error {
		got[h.First.String()] = h.Owner
		return nil
	}))
	require.Equal(t, addrspace.ByManifest, got["10.0.0.9"])
	require.NotEqual(t, addrspace.ByManifest, got["10.0.0.5"], "only the manifest reserves in its own name")
	require.Equal(t, "ab c", got["10.0.0.6"])
	require.LessOrEqual(t, len(got["10.0.0.7"]), maxRequester+len("…"))
}

func TestALargeNetworkIsListedAPageAtATime(t *testing.T) {
	pool, records := newPool(t, manifest.Subnet{CIDR: "10.0.0.0/16", Gateway: "10.0.0.1"})
	const servers = 2500 // more than a page of the listing
	for i := 0; i < servers; i += 25 {
		var wants []addrspace.Want
		for n := range 25 {
			wants = append(wants, addrspace.Want{Owner: fmt.Sprintf("uid-of-db/lan-0/%d", i+n)})
		}
		_, err := pool.Allocate(t.Context(), "net-uid", wants)
		require.NoError(t, err)
	}
	d := deps(t, records)
	d.Addresses = pool
	c := connect(t, serve(t, d))
	n, last := 0, netip.Addr{}
	require.NoError(t, c.ListAddresses(t.Context(), "lan", func([]SubnetUsage) error { return nil }, func(a Address) error {
		n++
		at := netip.MustParseAddr(a.First)
		require.True(t, !last.IsValid() || last.Less(at), "in order")
		last = at
		return nil
	}))
	require.Equal(t, servers+1, n)
}
