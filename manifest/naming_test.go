package manifest

import (
	"net"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestDerivedNamesAreStable(t *testing.T) {
	const uid = "7c2b1f8e-0000-4000-8000-000000000001"
	require.Equal(t, "data-1", DiskSerial("data-1"))
	require.Equal(t, "exactly-twenty-chars", DiskSerial("exactly-twenty-chars"))
	require.Equal(t, "a-volume-na-", DiskSerial("a-volume-name-that-is-long")[:12])
	require.Equal(t, "br-db-net", BridgeName("db-net"))
	require.Equal(t, "br-twelve-chars", BridgeName("twelve-chars"))
	require.Equal(t, "bw-db-net", NamespaceName("db-net"))
	require.Equal(t, DeviceName(uid, "db-net-0"), DeviceName(uid, "db-net-0"))
	require.NotEqual(t, DeviceName(uid, "db-net-0"), DeviceName(uid, "db-net-1"))
	require.NotEqual(t, MAC(uid, "db-net-0"), MAC(uid, "db-net-1"))
	require.Equal(t, uuid.Version(5), uuid.MustParse(DomainUUID(uid)).Version())
	require.Equal(t, DomainUUID(uid), DomainUUID(uid))
	require.Equal(t, "server/db", Ref(KindServer, "db"))
}

func TestInterfaceNamesNeverExceedFifteenCharacters(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.StringMatching(`[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?`).Draw(t, "name")
		require.NoError(t, CheckName(KindNetwork, name))
		require.LessOrEqual(t, len(BridgeName(name)), MaxDeviceName)
		require.Regexp(t, devicePattern, BridgeName(name))
		require.Regexp(t, `^bw[0-9a-f]{10}$`, DeviceName(name, name))
		require.LessOrEqual(t, len(DiskSerial(name)), MaxSerial)
		mac, err := net.ParseMAC(MAC(name, name))
		require.NoError(t, err)
		require.True(t, strings.HasPrefix(mac.String(), "52:54:00:"))
	})
}

func TestLongNamesThatBeginAlikeGetDifferentShortNames(t *testing.T) {
	a, b := strings.Repeat("a", 40)+"-one", strings.Repeat("a", 40)+"-two"
	require.NotEqual(t, DiskSerial(a), DiskSerial(b))
	require.NotEqual(t, BridgeName(a), BridgeName(b))
}

func TestParseKindNameTakesEveryForm(t *testing.T) {
	for _, test := range []struct {
		args []string
		kind Kind
		name string
	}{
		{[]string{"server", "db"}, KindServer, "db"},
		{[]string{"server/db"}, KindServer, "db"},
		{[]string{"srv/db"}, KindServer, "db"},
		{[]string{"Servers", "db"}, KindServer, "db"},
		{[]string{"net", "db-net"}, KindNetwork, "db-net"},
		{[]string{"VirtualNetwork/db-net"}, KindNetwork, "db-net"},
		{[]string{"vol/data-1"}, KindVolume, "data-1"},
		{[]string{"img/ubuntu24.04"}, KindImage, "ubuntu24.04"},
		{[]string{"host/kvm1"}, KindHost, "kvm1"},
	} {
		kind, name, err := ParseKindName(test.args...)
		require.NoError(t, err, test.args)
		require.Equal(t, test.kind, kind)
		require.Equal(t, test.name, name)
	}
	for _, args := range [][]string{nil, {""}, {"server"}, {"server/"}, {"/db"}, {"pod/db"}, {"server/db/x"}, {"server", "db", "x"}, {"server", "../etc"}, {"server", "A"}} {
		_, _, err := ParseKindName(args...)
		require.Error(t, err, args)
	}
}

func TestEveryShortFormMeansOneKind(t *testing.T) {
	seen := map[string]Kind{}
	for kind, words := range kindWords {
		require.Equal(t, kind.Word(), words[0])
		for _, word := range words {
			require.NotContains(t, seen, word)
			seen[word] = kind
		}
	}
}
