package devstacktest_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"burrow.dev/burrow/internal/devstacktest"
	"burrow.dev/burrow/internal/pki"
)

// patience bounds what happens by itself, beside builds and guests.
const patience = time.Minute

func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

func TestClusterKeepsItsDataWhateverMemberDies(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	_, err := pki.Ensure(dir, pki.Options{GroupID: -1})
	require.NoError(t, err)
	begun := time.Now()
	cluster := devstacktest.StartEtcdCluster(t, 3, devstacktest.ClusterOptions{TLSDir: dir})
	t.Logf("three members after %s", time.Since(begun))
	tls, err := cluster.Config().TLS.Client()
	require.NoError(t, err)
	c, err := clientv3.New(clientv3.Config{Endpoints: cluster.Endpoints(), TLS: tls})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	_, err = c.Put(within(t), "/k", "v")
	require.NoError(t, err)

	old := cluster.Leader(within(t))
	cluster.Kill(old)
	next := cluster.Leader(within(t))
	require.NotEqual(t, old, next)
	cluster.Restart(old)
	cluster.Stop(next)
	require.NotEqual(t, next, cluster.Leader(within(t)))
	cluster.Continue(next)
	cluster.Kill(0, 1, 2)
	cluster.Restart(0, 1, 2)
	cluster.AwaitHealthy(within(t))
	got, err := c.Get(within(t), "/k")
	require.NoError(t, err)
	require.Len(t, got.Kvs, 1)
	members, err := c.MemberList(within(t))
	require.NoError(t, err)
	require.Len(t, members.Members, 3)
}

func TestClusterOfOneIsAMemberAlone(t *testing.T) {
	t.Parallel()
	cluster := devstacktest.StartEtcdCluster(t, 1)
	require.Equal(t, 0, cluster.Leader(within(t)))
	cluster.Kill(0)
	cluster.Restart(0)
	cluster.AwaitHealthy(within(t))
}
