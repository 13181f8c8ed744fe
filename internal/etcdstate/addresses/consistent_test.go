package addresses

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"burrow.dev/burrow/internal/addrspace"
)

// requireConsistent checks the invariants of a network's keys against each other.
func requireConsistent(t *testing.T, p process, uid string) {
	t.Helper()
	require.NoError(t, p.inconsistency(t, uid))
}

// inconsistency gives the first broken invariant of a network's keys.
func (p process) inconsistency(t require.TestingT, uid string) error {
	k := keys{p.store, uid}
	resp, err := p.store.Client().Txn(context.Background()).Then(clientv3.OpGet(k.pool()), clientv3.OpGet(k.all(), clientv3.WithPrefix())).Commit()
	require.NoError(t, err)
	var spaces []*addrspace.Space
	if pools := resp.Responses[0].GetResponseRange().Kvs; len(pools) > 0 {
		spaces, err = parsePool(pools[0])
		require.NoError(t, err)
	}
	owners, addrs, counts, written := map[string]netip.Addr{}, map[netip.Addr]string{}, map[string]string{}, map[string]string{}
	for _, kv := range resp.Responses[1].GetResponseRange().Kvs {
		key, value := string(kv.Key), string(kv.Value)
		switch folder, rest, _ := strings.Cut(strings.TrimPrefix(key, k.all()), "/"); folder {
		case "a":
			a, ok := parseHexAddr(rest)
			require.True(t, ok, key)
			o, err := decodeOwned(kv)
			require.NoError(t, err)
			addrs[a] = o.Owner
		case "o":
			owners[rest] = netip.MustParsePrefix(value).Addr()
		case "b":
			written[key] = value
		}
	}
	numbers := map[string]int{}
	for a, owner := range addrs {
		if owners[owner] != a {
			return fmt.Errorf("%s has owner %s, who has %s", a, owner, owners[owner])
		}
		for _, sp := range spaces {
			if sp.Automatic(a) {
				numbers[k.count(sp.BlockOf(a))]++
			}
			if why := sp.Refuses(a); sp.Prefix.Contains(a) && why != "" && !strings.HasPrefix(owner, addrspace.GatewayOwner) {
				return fmt.Errorf("%s has owner %s and is %s", a, owner, why)
			}
		}
	}
	for key, n := range numbers {
		counts[key] = fmt.Sprint(n)
	}
	if len(owners) != len(addrs) {
		return fmt.Errorf("%d owners, %d addresses", len(owners), len(addrs))
	}
	if fmt.Sprint(counts) != fmt.Sprint(written) {
		return fmt.Errorf("counts are %v, should be %v", written, counts)
	}
	return nil
}
