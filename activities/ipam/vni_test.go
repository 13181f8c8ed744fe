package ipam_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"burrow.dev/burrow/activities/ipam"
	"burrow.dev/burrow/internal/devstacktest"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/manifest"
)

func overlay(name string, vni int) ipam.SettleNetworkIn {
	return ipam.SettleNetworkIn{Name: name, UID: uuid.NewString(), Spec: manifest.NetworkSpec{
		Mode: manifest.ModeOverlay, VNI: vni, Subnets: []manifest.Subnet{{CIDR: "10.0.0.0/24"}},
	}}
}

func TestVNIsAreAskedForOrTheSmallestFree(t *testing.T) {
	s := newSite(t, devstacktest.Etcd(t))
	settle := func(in ipam.SettleNetworkIn) int {
		out, err := s.SettleNetwork(t.Context(), in)
		require.NoError(t, err)
		again, err := s.SettleNetwork(t.Context(), in)
		require.NoError(t, err)
		require.Equal(t, out, again)
		return out.Network.VNI
	}
	first := overlay("a", 0)
	require.Equal(t, 4097, settle(first))
	require.Equal(t, 4098, settle(overlay("b", 4098)))
	require.Equal(t, 4099, settle(overlay("c", 0)))
	require.Equal(t, 100, settle(overlay("d", 100)))
	_, err := s.SettleNetwork(t.Context(), overlay("e", 4097))
	require.ErrorIs(t, err, errs.ErrExists)
	require.ErrorContains(t, err, "network/a has VNI 4097")
	for _, vni := range []int{-1, 1 << 24} {
		_, err = s.SettleNetwork(t.Context(), overlay("e", vni))
		require.ErrorIs(t, err, errs.ErrInvalid)
	}
	_, err = s.ForgetNetwork(t.Context(), ipam.ForgetNetworkIn{Name: first.Name, UID: first.UID})
	require.NoError(t, err)
	require.Equal(t, 4097, settle(overlay("e", 0)), "free with its network")
	require.Zero(t, s.network(t, "plain", manifest.NetworkSpec{Mode: manifest.ModeNAT}).Status.Network.VNI)
}

func TestOverlaysSettledAtOnceWithLostResponsesHaveTheirOwnVNIs(t *testing.T) {
	endpoint := devstacktest.Etcd(t)
	var mu sync.Mutex
	vnis := map[int]string{}
	var group errgroup.Group
	for p := range 3 {
		s := newLossySite(t, endpoint, 10)
		for n := range 6 {
			in := overlay(fmt.Sprintf("net-%d-%d", p, n), 0)
			for range 2 { // a retried activity
				group.Go(func() error {
					out, err := s.SettleNetwork(t.Context(), in)
					for err != nil && errs.ClassOf(err) == errs.Transient {
						out, err = s.SettleNetwork(t.Context(), in)
					}
					if err != nil {
						return err
					}
					mu.Lock()
					defer mu.Unlock()
					if other, ok := vnis[out.Network.VNI]; ok && other != in.UID {
						return fmt.Errorf("two networks have VNI %d", out.Network.VNI)
					}
					vnis[out.Network.VNI] = in.UID
					return nil
				})
			}
		}
	}
	require.NoError(t, group.Wait())
	require.Len(t, vnis, 18)
	require.Contains(t, vnis, 4097+17, "the smallest, no gaps")
}

// Two attempts for the same NIC at once, whose first choices come and go.
func TestMACsOfOneNICAreOneWhateverIsLost(t *testing.T) {
	endpoint := devstacktest.Etcd(t)
	s := newSite(t, endpoint)
	s.network(t, "a", manifest.NetworkSpec{Mode: manifest.ModeNAT})
	db := server("db")
	nics := []manifest.NIC{{Name: "a-0", Network: "a"}}
	first := manifest.MAC(db.UID, "a-0")
	var mu sync.Mutex
	macs := map[string]bool{}
	var group errgroup.Group
	for range 3 {
		s := newLossySite(t, endpoint, 10)
		for range 5 {
			group.Go(func() error {
				out, err := s.Allocate(t.Context(), ipam.AllocateIn{Server: db, NICs: nics})
				for err != nil && errs.ClassOf(err) == errs.Transient {
					out, err = s.Allocate(t.Context(), ipam.AllocateIn{Server: db, NICs: nics})
				}
				if err != nil {
					return err
				}
				mu.Lock()
				defer mu.Unlock()
				macs[out.Ports[0].MAC] = true
				return nil
			})
		}
	}
	group.Go(func() error {
		for range 20 {
			if _, err := s.store.OwnOne(t.Context(), "macs", "somebody/nic", first); err != nil {
				return err
			}
			if err := s.store.Disown(t.Context(), "macs", "somebody/nic", first); err != nil {
				return err
			}
		}
		return nil
	})
	require.NoError(t, group.Wait())
	require.Len(t, macs, 1)
	_, err := s.Release(t.Context(), ipam.ReleaseIn{Server: db, NICs: nics})
	require.NoError(t, err)
	left, err := s.store.KeysBelow(t.Context(), "macs")
	require.NoError(t, err)
	require.Empty(t, left)
}
