package devstacktest_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"burrow.dev/burrow/internal/devstacktest"
)

func dialEtcd(t *testing.T, endpoint string) *clientv3.Client {
	t.Helper()
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{endpoint}, DialTimeout: 10 * time.Second})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

func TestEtcdServesAndKeepsItsDataOverAKill(t *testing.T) {
	member := devstacktest.StartEtcd(t)
	c := dialEtcd(t, member.EtcdEndpoint)
	_, err := c.Put(t.Context(), "/k", "v")
	require.NoError(t, err)

	require.NoError(t, member.Kill())
	member.Restart()

	got, err := dialEtcd(t, member.EtcdEndpoint).Get(t.Context(), "/k")
	require.NoError(t, err)
	require.Len(t, got.Kvs, 1)
	require.Equal(t, "v", string(got.Kvs[0].Value))
}

func TestStackRunsAWorkflowWithBurrowsSearchAttributes(t *testing.T) {
	stack := devstacktest.Stack(t)
	w := worker.New(stack.Client, "queue", worker.Options{})
	w.RegisterWorkflowWithOptions(func(workflow.Context) (string, error) { return "dug", nil }, workflow.RegisterOptions{Name: "Dig"})
	require.NoError(t, w.Start())
	t.Cleanup(w.Stop)

	run, err := stack.Client.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{
		ID: "server/db", TaskQueue: "queue",
		TypedSearchAttributes: temporal.NewSearchAttributes(
			temporal.NewSearchAttributeKeyKeyword("BurrowServer").ValueSet("db"),
			temporal.NewSearchAttributeKeyBool("BurrowNeedsAttention").ValueSet(true),
			temporal.NewSearchAttributeKeyInt64("BurrowCPU").ValueSet(2),
		),
	}, "Dig")
	require.NoError(t, err)
	var result string
	require.NoError(t, run.Get(t.Context(), &result))
	require.Equal(t, "dug", result)

	_, err = dialEtcd(t, stack.EtcdEndpoint).Get(t.Context(), "/k")
	require.NoError(t, err)
}

func TestStartSaysWhyTheProgramEnded(t *testing.T) {
	_, err := devstacktest.Start(t.Context(), "serve")
	require.ErrorContains(t, err, "--data-dir is required")
}
