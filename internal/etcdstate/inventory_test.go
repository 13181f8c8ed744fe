package etcdstate

import (
	"testing"

	"github.com/stretchr/testify/require"

	"burrow.dev/burrow/internal/capacity"
	"burrow.dev/burrow/manifest"
)

func TestEverythingThatIsHeldIsListedWithItsHolder(t *testing.T) {
	s, ctx := newTestStore(t), t.Context()
	require.NoError(t, s.AddReference(ctx, "net", "kvm1", "uid"))
	refs, err := s.AllReferences(ctx)
	require.NoError(t, err)
	require.Equal(t, []Reference{{NetworkUID: "net", Host: "kvm1", Owner: "uid"}}, refs)

	_, err = s.OwnOne(ctx, "macs", "uid/eth", "52:54:00:00:00:01")
	require.NoError(t, err)
	macs, err := s.Owners(ctx, "macs")
	require.NoError(t, err)
	require.Equal(t, map[string]string{"52:54:00:00:00:01": "uid/eth"}, macs)

	host, err := s.Placement(ctx, "uid")
	require.NoError(t, err)
	require.Empty(t, host)
	reserved, err := s.Reservations(ctx)
	require.NoError(t, err)
	require.Empty(t, reserved)
}

func TestAReservationIsListedUntilItIsDropped(t *testing.T) {
	s, ctx := newTestStore(t), t.Context()
	require.NoError(t, s.RegisterHost(ctx, "kvm1", nil, capacity.Spec{CPU: 1}))
	_, err := s.client.Put(ctx, s.Key("alive", "kvm1"), "")
	require.NoError(t, err)
	_, err = s.Reserve(ctx, "uid", capacity.Reservation{Owner: "server/db"}, func([]capacity.Host) (string, error) { return "kvm1", nil })
	require.NoError(t, err)
	all, err := s.Reservations(ctx)
	require.NoError(t, err)
	require.Equal(t, []Reserved{{Host: "kvm1", UID: "uid", Owner: "server/db"}}, all)
	host, err := s.Placement(ctx, "uid")
	require.NoError(t, err)
	require.Equal(t, "kvm1", host)
	require.NoError(t, s.Unreserve(ctx, "uid"))
	all, err = s.Reservations(ctx)
	require.NoError(t, err)
	require.Empty(t, all)
}

func TestAClaimThatIsTakenAgainMeanwhileIsNotDropped(t *testing.T) {
	s, ctx := newTestStore(t), t.Context()
	require.NoError(t, s.Claim(ctx, "playbook/one", "server/a"))
	listed, err := s.Claims(ctx)
	require.NoError(t, err)
	require.Len(t, listed, 1)
	require.NoError(t, s.Claim(ctx, "playbook/one", "server/a"), "a later run of the same operation")
	require.NoError(t, s.DropClaim(ctx, listed[0]))
	again, err := s.Claims(ctx)
	require.NoError(t, err)
	require.Len(t, again, 1)
	require.Equal(t, listed[0].Since, again[0].Since)
	require.NoError(t, s.DropClaim(ctx, again[0]))
	again, err = s.Claims(ctx)
	require.NoError(t, err)
	require.Empty(t, again)
}

func TestADeletedRecordIsRememberedAndAMissingOneIsNot(t *testing.T) {
	s, ctx := newTestStore(t), t.Context()
	for _, name := range []string{"deleted", "missing"} {
		_, err := s.Create(ctx, server(name, "uid-"+name))
		require.NoError(t, err)
	}
	require.NoError(t, s.Delete(ctx, manifest.KindServer, "deleted", "uid-deleted"))
	_, err := s.client.Delete(ctx, s.Key("servers", "missing"))
	require.NoError(t, err)
	all, err := s.Deleted(ctx)
	require.NoError(t, err)
	require.Len(t, all, 1)
	gone := all["uid-deleted"]
	require.Equal(t, "deleted", gone.Name)
	require.Equal(t, manifest.KindServer, gone.Kind)

	require.NoError(t, s.ForgetDeleted(ctx, gone.At.Add(DeletedKept/2)))
	all, err = s.Deleted(ctx)
	require.NoError(t, err)
	require.Len(t, all, 1)
	require.NoError(t, s.ForgetDeleted(ctx, gone.At.Add(DeletedKept)))
	all, err = s.Deleted(ctx)
	require.NoError(t, err)
	require.Empty(t, all)
}
