package ipam_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go4.org/netipx"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"burrow.dev/burrow/activities"
	"burrow.dev/burrow/activities/ipam"
	"burrow.dev/burrow/internal/addrspace"
	"burrow.dev/burrow/internal/config"
	"burrow.dev/burrow/internal/devstacktest"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/internal/etcdstate"
	"burrow.dev/burrow/internal/etcdstate/addresses"
	"burrow.dev/burrow/manifest"
)

type site struct {
	*ipam.Activities
	store *etcdstate.Store
}

func newSite(t *testing.T, endpoint string) site {
	t.Helper()
	return newLossySite(t, endpoint, 0)
}

// newLossySite loses one response in n, after etcd has done what was asked; 0 is none.
func newLossySite(t *testing.T, endpoint string, n int) site {
	t.Helper()
	lose := func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		err := invoke(ctx, method, req, reply, cc, opts...)
		if _, txn := req.(*etcdserverpb.TxnRequest); err == nil && txn && n > 0 && rand.N(n) == 0 {
			return status.Error(codes.Unavailable, "the response was lost")
		}
		return err
	}
	store, err := etcdstate.Open(config.Etcd{Endpoints: []string{endpoint}},
		etcdstate.Options{LockTTL: 2 * time.Second, DialOptions: []grpc.DialOption{grpc.WithChainUnaryInterceptor(lose)}})
	require.NoError(t, err)
	pools := addresses.New(store, addresses.Options{Quarantine: -1})
	t.Cleanup(func() { pools.Close(); require.NoError(t, store.Close()) })
	return site{ipam.New(store, pools), store}
}

// network declares and settles a network.
func (s site) network(t *testing.T, name string, spec manifest.NetworkSpec) manifest.Record {
	t.Helper()
	uid := uuid.NewString()
	out, err := s.SettleNetwork(t.Context(), ipam.SettleNetworkIn{Name: name, UID: uid, Spec: spec})
	require.NoError(t, err)
	data, err := json.Marshal(spec)
	require.NoError(t, err)
	rec, err := s.store.Create(t.Context(), manifest.Record{
		APIVersion: manifest.APIVersion, Kind: manifest.KindNetwork,
		Metadata: manifest.RecordMeta{Metadata: manifest.Metadata{Name: name}, UID: uid},
		Spec:     data,
		Status:   manifest.Status{Phase: manifest.PhaseReady, Network: &out.Network},
	})
	require.NoError(t, err)
	return rec
}

func server(name string) activities.Server {
	return activities.Server{Name: name, UID: uuid.NewString()}
}

func TestPortsAreComplete(t *testing.T) {
	s := newSite(t, devstacktest.Etcd(t))
	isolated := s.network(t, "db-net", manifest.NetworkSpec{Mode: manifest.ModeIsolated, Subnets: []manifest.Subnet{{CIDR: "172.16.90.0/24"}}, VLAN: 120, PortSecurity: true})
	nat := s.network(t, "host-bridge", manifest.NetworkSpec{
		Mode: manifest.ModeNAT, PortSecurity: true, MTU: 1400, DNS: manifest.DNS{Domain: "site"},
		Subnets: []manifest.Subnet{{CIDR: "10.9.0.0/24"}, {CIDR: "fd00:9::/64"}},
	})
	second := s.network(t, "other", manifest.NetworkSpec{Mode: manifest.ModeNAT})
	db := server("db")
	out, err := s.Allocate(t.Context(), ipam.AllocateIn{Server: db, NICs: []manifest.NIC{
		{Name: "db-net-0", Network: "db-net", Address: []string{"172.16.90.7"}, Routes: []manifest.Route{{To: "10.1.0.0/16", Via: "172.16.90.9"}}},
		{Name: "host-bridge-0", Network: "host-bridge", VLANs: []int{5, 6}, NativeVLAN: 5, RateMbps: 100},
		{Name: "other-0", Network: "other", MAC: "52:54:00:aa:bb:cc", Nameservers: &manifest.Nameservers{Addresses: []string{"9.9.9.9"}, Search: []string{"example.org"}}},
	}})
	require.NoError(t, err)
	require.Equal(t, []manifest.Port{
		{
			Name: "db-net-0", Index: 0, Network: "db-net", NetworkUID: isolated.Metadata.UID, MAC: manifest.MAC(db.UID, "db-net-0"),
			Device: manifest.DeviceName(db.UID, "db-net-0"), Bridge: "br-db-net", Addresses: []string{"172.16.90.7/24"},
			Nameservers: []string{"172.16.90.1"}, Search: []string{"db-net"}, Routes: []manifest.Route{{To: "10.1.0.0/16", Via: "172.16.90.9"}},
			MTU: 1500, VLANs: []int{120}, Security: true,
		},
		{
			Name: "host-bridge-0", Index: 1, Network: "host-bridge", NetworkUID: nat.Metadata.UID, MAC: manifest.MAC(db.UID, "host-bridge-0"),
			Device: manifest.DeviceName(db.UID, "host-bridge-0"), Bridge: "br-host-bridge", Addresses: []string{"10.9.0.2/24", "fd00:9::2/64"},
			Gateways: []string{"10.9.0.1", "fd00:9::1"}, Nameservers: []string{"10.9.0.1", "fd00:9::1"}, Search: []string{"site"},
			MTU: 1400, VLANs: []int{5, 6}, NativeVLAN: 5, RateMbps: 100, Security: true,
		},
		{
			Name: "other-0", Index: 2, Network: "other", NetworkUID: second.Metadata.UID, MAC: "52:54:00:aa:bb:cc",
			Device: manifest.DeviceName(db.UID, "other-0"), Bridge: "br-other", Addresses: []string{"172.16.100.2/24"},
			Nameservers: []string{"9.9.9.9"}, Search: []string{"example.org"}, MTU: 1500,
		},
	}, out.Ports)
}

func TestOwnDefaultRouteReplacesTheGateway(t *testing.T) {
	s := newSite(t, devstacktest.Etcd(t))
	s.network(t, "a", manifest.NetworkSpec{Mode: manifest.ModeNAT})
	out, err := s.Allocate(t.Context(), ipam.AllocateIn{Server: server("db"), NICs: []manifest.NIC{
		{Name: "a-0", Network: "a", Routes: []manifest.Route{{To: "default", Via: "172.16.100.254"}}},
	}})
	require.NoError(t, err)
	require.Empty(t, out.Ports[0].Gateways)
}

func TestANICTakesNoAddressThatAnotherOfTheServerAsksFor(t *testing.T) {
	s := newSite(t, devstacktest.Etcd(t))
	s.network(t, "a", manifest.NetworkSpec{Mode: manifest.ModeNAT, Subnets: []manifest.Subnet{{CIDR: "10.0.0.0/24"}}})
	out, err := s.Allocate(t.Context(), ipam.AllocateIn{Server: server("db"), NICs: []manifest.NIC{
		{Name: "a-0", Network: "a"}, {Name: "a-1", Network: "a", Address: []string{"10.0.0.2"}},
	}})
	require.NoError(t, err)
	require.Equal(t, []string{"10.0.0.3/24"}, out.Ports[0].Addresses)
	require.Equal(t, []string{"10.0.0.2/24"}, out.Ports[1].Addresses)
}

func TestRetryGetsTheSameAnswerAndReleaseLeavesNothing(t *testing.T) {
	s := newSite(t, devstacktest.Etcd(t))
	s.network(t, "a", manifest.NetworkSpec{Mode: manifest.ModeNAT})
	s.network(t, "b", manifest.NetworkSpec{Mode: manifest.ModeNAT})
	before := s.keys(t)
	in := ipam.AllocateIn{Server: server("db"), NICs: []manifest.NIC{{Name: "a-0", Network: "a"}, {Name: "b-0", Network: "b"}, {Name: "a-1", Network: "a"}}}
	first, err := s.Allocate(t.Context(), in)
	require.NoError(t, err)
	again, err := s.Allocate(t.Context(), in)
	require.NoError(t, err)
	require.Equal(t, first, again)
	for range 2 {
		_, err = s.Release(t.Context(), ipam.ReleaseIn(in))
		require.NoError(t, err)
	}
	require.Equal(t, before, s.keys(t))
}

// keys lists all keys but cursors.
func (s site) keys(t *testing.T) []string {
	t.Helper()
	var out []string
	for _, folder := range []string{"ipam", "macs"} {
		keys, err := s.store.KeysBelow(t.Context(), folder)
		require.NoError(t, err)
		for _, key := range keys {
			if !strings.Contains(key, "/cursor/") {
				out = append(out, key)
			}
		}
	}
	return out
}

func TestReleaseByARecreatedServersNameFreesNothingOfTheOther(t *testing.T) {
	s := newSite(t, devstacktest.Etcd(t))
	s.network(t, "a", manifest.NetworkSpec{Mode: manifest.ModeNAT, Subnets: []manifest.Subnet{{CIDR: "10.0.0.0/30"}}})
	nics := []manifest.NIC{{Name: "a-0", Network: "a"}}
	old, young := server("db"), server("db")
	_, err := s.Allocate(t.Context(), ipam.AllocateIn{Server: young, NICs: nics})
	require.NoError(t, err)
	_, err = s.Release(t.Context(), ipam.ReleaseIn{Server: old, NICs: nics})
	require.NoError(t, err)
	_, err = s.Allocate(t.Context(), ipam.AllocateIn{Server: server("web"), NICs: nics})
	require.ErrorIs(t, err, errs.ErrNoSpace)
}

func TestErrorsNameNetworkUsersAndTheNextStep(t *testing.T) {
	s := newSite(t, devstacktest.Etcd(t))
	s.network(t, "small", manifest.NetworkSpec{Mode: manifest.ModeNAT, Subnets: []manifest.Subnet{{CIDR: "10.0.0.0/30"}}})
	db := server("db")
	_, err := s.store.Create(t.Context(), manifest.Record{Kind: manifest.KindServer, Metadata: manifest.RecordMeta{Metadata: manifest.Metadata{Name: "db"}, UID: db.UID}})
	require.NoError(t, err)
	nic := func(network string, address ...string) []manifest.NIC {
		return []manifest.NIC{{Name: network + "-0", Network: network, Address: address}}
	}
	_, err = s.Allocate(t.Context(), ipam.AllocateIn{Server: db, NICs: nic("small")})
	require.NoError(t, err)
	tests := map[string]struct {
		nics  []manifest.NIC
		class errs.Class
		says  []string
	}{
		"exhausted":     {nic("small"), errs.Operator, []string{"server/web", "network/small", "all 1 are in use", "server/db (1)", "second subnet"}},
		"static taken":  {nic("small", "10.0.0.2"), errs.Permanent, []string{"10.0.0.2", "server/db has it"}},
		"gateway asked": {nic("small", "10.0.0.1"), errs.Permanent, []string{"10.0.0.1", "the gateway"}},
		"outside":       {nic("small", "10.0.1.1"), errs.Permanent, []string{"10.0.1.1", "none of the network's subnets"}},
		"no network":    {nic("absent"), errs.Permanent, []string{"network/absent", "not found"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := s.Allocate(t.Context(), ipam.AllocateIn{Server: server("web"), NICs: tt.nics})
			require.Error(t, err)
			require.Equal(t, tt.class, errs.ClassOf(err))
			for _, part := range tt.says {
				require.Contains(t, err.Error(), part)
			}
		})
	}
}

func TestAFullPoolNamesItsSizeAndWhoHasMost(t *testing.T) {
	s := newSite(t, devstacktest.Etcd(t))
	s.network(t, "small", manifest.NetworkSpec{Mode: manifest.ModeNAT, Subnets: []manifest.Subnet{{CIDR: "10.0.0.0/28"}}})
	give := func(name string, nics int) error {
		srv := server(name)
		_, err := s.store.Create(t.Context(), manifest.Record{Kind: manifest.KindServer, Metadata: manifest.RecordMeta{Metadata: manifest.Metadata{Name: name}, UID: srv.UID}})
		require.NoError(t, err)
		in := ipam.AllocateIn{Server: srv}
		for i := range nics {
			in.NICs = append(in.NICs, manifest.NIC{Name: fmt.Sprintf("small-%d", i), Network: "small"})
		}
		_, err = s.Allocate(t.Context(), in)
		return err
	}
	require.NoError(t, give("one", 1))
	require.NoError(t, give("nine", 9))
	require.NoError(t, give("three", 3))
	err := give("late", 1)
	require.Equal(t, errs.Operator, errs.ClassOf(err))
	require.ErrorContains(t, err, "network/small: subnet 10.0.0.0/28 has no address left: all 13 are in use; most have server/nine (9), server/three (3), server/one (1); delete servers")
}

func TestAPoolInQuarantineIsWaitedFor(t *testing.T) {
	s := newSite(t, devstacktest.Etcd(t))
	pools := addresses.New(s.store, addresses.Options{Quarantine: time.Hour})
	defer pools.Close()
	resting := site{ipam.New(s.store, pools), s.store}
	resting.network(t, "small", manifest.NetworkSpec{Mode: manifest.ModeNAT, Subnets: []manifest.Subnet{{CIDR: "10.0.0.0/30"}}})
	in := ipam.AllocateIn{Server: server("db"), NICs: []manifest.NIC{{Name: "small-0", Network: "small"}}}
	_, err := resting.Allocate(t.Context(), in)
	require.NoError(t, err)
	_, err = resting.Release(t.Context(), ipam.ReleaseIn(in))
	require.NoError(t, err)
	_, err = resting.Allocate(t.Context(), in)
	require.Equal(t, errs.Transient, errs.ClassOf(err))
	require.ErrorContains(t, err, "network/small: all free addresses were released a moment ago")
}

func TestAnAddressThatAUserReservedSaysWhoAndWhy(t *testing.T) {
	s := newSite(t, devstacktest.Etcd(t))
	rec := s.network(t, "a", manifest.NetworkSpec{Mode: manifest.ModeNAT, Subnets: []manifest.Subnet{{CIDR: "10.0.0.0/24"}}})
	pools := addresses.New(s.store, addresses.Options{})
	defer pools.Close()
	require.NoError(t, pools.Reserve(t.Context(), rec.Metadata.UID, netipx.MustParseIPRange("10.0.0.9-10.0.0.9"), addrspace.Reservation{By: "alice", Comment: "the printer"}))
	_, err := s.Allocate(t.Context(), ipam.AllocateIn{Server: server("db"), NICs: []manifest.NIC{{Name: "a-0", Network: "a", Address: []string{"10.0.0.9"}}}})
	require.Equal(t, errs.Permanent, errs.ClassOf(err))
	require.ErrorContains(t, err, "address 10.0.0.9 cannot be used: reserved by alice: the printer")
}

func TestSameMACTwiceIsRefusedAndDerivedOnesMoveOn(t *testing.T) {
	s := newSite(t, devstacktest.Etcd(t))
	s.network(t, "a", manifest.NetworkSpec{Mode: manifest.ModeNAT})
	nics := []manifest.NIC{{Name: "a-0", Network: "a", MAC: "52:54:00:00:00:01"}}
	_, err := s.Allocate(t.Context(), ipam.AllocateIn{Server: server("one"), NICs: nics})
	require.NoError(t, err)
	_, err = s.Allocate(t.Context(), ipam.AllocateIn{Server: server("two"), NICs: nics})
	require.ErrorIs(t, err, errs.ErrExists)
	three := server("three")
	_, err = s.store.OwnOne(t.Context(), "macs", "somebody/nic", manifest.MAC(three.UID, "a-0"))
	require.NoError(t, err)
	in := ipam.AllocateIn{Server: three, NICs: []manifest.NIC{{Name: "a-0", Network: "a"}}}
	out, err := s.Allocate(t.Context(), in)
	require.NoError(t, err)
	require.NotEqual(t, manifest.MAC(three.UID, "a-0"), out.Ports[0].MAC)
	require.NoError(t, s.store.Disown(t.Context(), "macs", "somebody/nic", manifest.MAC(three.UID, "a-0")))
	again, err := s.Allocate(t.Context(), in)
	require.NoError(t, err)
	require.Equal(t, out, again, "though the first choice has become free")
}

func TestNetworksSettledAtOnceGetTheirOwnSubnets(t *testing.T) {
	endpoint := devstacktest.Etcd(t)
	var mu sync.Mutex
	subnets, bridges := map[string]bool{}, map[string]bool{}
	var group errgroup.Group
	for p := range 3 {
		s := newSite(t, endpoint)
		for n := range 8 {
			group.Go(func() error {
				in := ipam.SettleNetworkIn{Name: fmt.Sprintf("a-very-long-network-name-%d-%d", p, n), UID: uuid.NewString(), Spec: manifest.NetworkSpec{Mode: manifest.ModeNAT}}
				out, err := s.SettleNetwork(t.Context(), in)
				if err != nil {
					return err
				}
				again, err := s.SettleNetwork(t.Context(), in)
				if err != nil {
					return err
				}
				if again.Network.Bridge != out.Network.Bridge {
					return errors.New("a second answer")
				}
				mu.Lock()
				defer mu.Unlock()
				subnets[out.Network.Subnets[0].CIDR], bridges[out.Network.Bridge] = true, true
				return nil
			})
		}
	}
	require.NoError(t, group.Wait())
	require.Len(t, subnets, 24)
	require.Len(t, bridges, 24)
	require.Contains(t, subnets, "172.16.123.0/24", "the first free ones, no gaps")
}

func TestOverlapInOneRoutingDomainIsRefused(t *testing.T) {
	s := newSite(t, devstacktest.Etcd(t))
	subnet := []manifest.Subnet{{CIDR: "10.0.0.77/16"}}
	first := s.network(t, "a", manifest.NetworkSpec{Mode: manifest.ModeNAT, Subnets: subnet})
	require.Equal(t, "10.0.0.0/16", first.Status.Network.Subnets[0].CIDR)
	require.Equal(t, "10.0.0.1", first.Status.Network.Subnets[0].Gateway)
	_, err := s.SettleNetwork(t.Context(), ipam.SettleNetworkIn{Name: "b", UID: "b", Spec: manifest.NetworkSpec{Mode: manifest.ModeRouted, Subnets: []manifest.Subnet{{CIDR: "10.0.5.0/24"}}}})
	require.ErrorIs(t, err, errs.ErrExists)
	require.ErrorContains(t, err, "network/a")
	s.network(t, "c", manifest.NetworkSpec{Mode: manifest.ModeIsolated, Subnets: subnet})
	s.network(t, "d", manifest.NetworkSpec{Mode: manifest.ModeIsolated, Subnets: subnet})
}

func TestDefaultBridgeIsTheNetworksOwnAndAnAskedOneMayBeShared(t *testing.T) {
	s := newSite(t, devstacktest.Etcd(t))
	shared := manifest.NetworkSpec{Mode: manifest.ModeIsolated, BridgeName: manifest.BridgeName("own")}
	require.Equal(t, "br-own", s.network(t, "first", shared).Status.Network.Bridge)
	require.Equal(t, "br-own", s.network(t, "second", shared).Status.Network.Bridge)
	own := s.network(t, "own", shared).Status.Network.Bridge
	require.NotEqual(t, "br-own", own)
	require.LessOrEqual(t, len(own), 15)
}

func TestForgetNetworkNamesItsUsers(t *testing.T) {
	s := newSite(t, devstacktest.Etcd(t))
	net := s.network(t, "a", manifest.NetworkSpec{Mode: manifest.ModeNAT})
	db := server("db")
	_, err := s.store.Create(t.Context(), manifest.Record{Kind: manifest.KindServer, Metadata: manifest.RecordMeta{Metadata: manifest.Metadata{Name: "db"}, UID: db.UID}})
	require.NoError(t, err)
	in := ipam.AllocateIn{Server: db, NICs: []manifest.NIC{{Name: "a-0", Network: "a"}}}
	_, err = s.Allocate(t.Context(), in)
	require.NoError(t, err)
	forget := ipam.ForgetNetworkIn{Name: "a", UID: net.Metadata.UID}
	_, err = s.ForgetNetwork(t.Context(), forget)
	require.ErrorIs(t, err, errs.ErrBusy)
	require.ErrorContains(t, err, "server/db")
	require.Equal(t, errs.Permanent, errs.ClassOf(err))
	_, err = s.Release(t.Context(), ipam.ReleaseIn(in))
	require.NoError(t, err)
	for range 2 {
		_, err = s.ForgetNetwork(t.Context(), forget)
		require.NoError(t, err)
	}
	require.Empty(t, s.keys(t))
}
