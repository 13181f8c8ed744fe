package etcdstate

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"burrow.dev/burrow/internal/config"
	"burrow.dev/burrow/internal/devstacktest"
	"burrow.dev/burrow/internal/errs"
)

// holderEnv makes the test binary a process that holds a lock.
const holderEnv = "BURROW_TEST_LOCK_HOLDER"

// holding is what such a process is told.
type holding struct {
	Etcd config.Etcd
	Name string
	TTL  time.Duration
}

// runHolder takes the lock, says by which key, and holds it until its input ends.
func runHolder(text string, in io.Reader, out io.Writer) error {
	var h holding
	if err := json.Unmarshal([]byte(text), &h); err != nil {
		return err
	}
	store, err := Open(h.Etcd, Options{LockTTL: h.TTL})
	if err != nil {
		return err
	}
	defer store.Close()
	held, err := store.Lock(context.Background(), h.Name)
	if err != nil {
		return err
	}
	fmt.Fprintln(out, held.Key())
	_, _ = io.Copy(io.Discard, in)
	held.Unlock(context.Background())
	return nil
}

// holder is a process that holds a lock or waits for it.
type holder struct {
	t       *testing.T
	command *exec.Cmd
	lines   *bufio.Scanner
}

func startHolder(t *testing.T, h holding) *holder {
	t.Helper()
	text, err := json.Marshal(h)
	require.NoError(t, err)
	p := &holder{t: t, command: exec.Command(os.Args[0])}
	p.command.Env = append(os.Environ(), holderEnv+"="+string(text))
	var stderr bytes.Buffer
	p.command.Stderr = &stderr
	_, err = p.command.StdinPipe() // a test that dies takes the process with it
	require.NoError(t, err)
	out, err := p.command.StdoutPipe()
	require.NoError(t, err)
	p.lines = bufio.NewScanner(out)
	require.NoError(t, p.command.Start())
	t.Cleanup(func() {
		p.kill()
		require.Empty(t, stderr.String())
	})
	return p
}

// key waits until the process has the lock.
func (p *holder) key() string {
	p.t.Helper()
	require.True(p.t, p.lines.Scan(), "the process ended before it had the lock")
	return p.lines.Text()
}

func (p *holder) kill() {
	_ = p.command.Process.Kill() // ended already, when twice
	_ = p.command.Wait()
}

// arrival is how one waiter came to the lock.
type arrival struct {
	at     time.Time
	failed int
	err    error
}

// A holder is killed, and with it another process, next in the queue. Others get the lock
// when the leases have run out, TTL + 2 s later at most; when the leader dies as well,
// the new one gives the leases their whole time again, but nobody fails for good.
func TestKilledHolderDelaysOthersByItsLeaseAtMost(t *testing.T) {
	for name, leaderDies := range map[string]bool{"stable leader": false, "the leader dies as well": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cluster := devstacktest.StartEtcdCluster(t, 3)
			for range rounds() {
				killAndWait(t, cluster, leaderDies)
			}
		})
	}
}

func killAndWait(t *testing.T, cluster *devstacktest.EtcdCluster, leaderDies bool) {
	t.Helper()
	const ttl, slack, waiters = 3 * time.Second, 2 * time.Second, 3
	lock := holding{Etcd: cluster.Config(), Name: "x", TTL: ttl}
	watching := openCluster(t, cluster.Config(), Options{})
	queue := func(n int) {
		t.Helper()
		require.Eventually(t, func() bool {
			keys, err := watching.KeysBelow(t.Context(), "locks/x")
			return err == nil && len(keys) == n
		}, faultPatience, 10*time.Millisecond)
	}
	first := startHolder(t, lock)
	key := first.key()
	second := startHolder(t, lock)
	queue(2)
	arrivals := make(chan arrival, waiters)
	for range waiters {
		s := openCluster(t, cluster.Config(), Options{LockTTL: ttl})
		go func() { arrivals <- arrive(within(t), s, lock.Name) }()
	}
	queue(2 + waiters)
	got, err := watching.client.Get(t.Context(), key)
	require.NoError(t, err)
	require.Len(t, got.Kvs, 1)
	ctx, cancel := context.WithCancel(within(t))
	defer cancel()
	gone := watching.client.Watch(ctx, key, clientv3.WithRev(got.Kvs[0].ModRevision+1), clientv3.WithFilterPut())

	leader := cluster.Leader(within(t))
	killed := time.Now()
	first.kill()
	second.kill()
	if leaderDies {
		cluster.Kill(leader)
	}
	resp := <-gone
	require.NoError(t, resp.Err())
	require.Len(t, resp.Events, 1)
	expired := time.Since(killed)
	longest := time.Duration(0)
	for range waiters {
		a := <-arrivals
		require.NoError(t, a.err, "a terminal error")
		longest = max(longest, a.at.Sub(killed))
		if !leaderDies {
			require.Zero(t, a.failed, "with a stable leader nobody fails at all")
		}
	}
	t.Logf("the lease ended after %s, the last waiter had the lock after %s", expired, longest)
	if leaderDies {
		cluster.Restart(leader)
		return
	}
	require.LessOrEqual(t, longest, ttl+slack)
	lease, err := watching.client.TimeToLive(t.Context(), clientv3.LeaseID(got.Kvs[0].Lease))
	require.NoError(t, err)
	require.Equal(t, int64(-1), lease.TTL, "it was the lease that freed the lock")
}

// arrive takes the lock and gives it back; transient errors are tried again, as activities are.
func arrive(ctx context.Context, s *Store, name string) arrival {
	var a arrival
	for {
		held, err := s.Lock(ctx, name)
		if err == nil {
			a.at = time.Now()
			held.Unlock(ctx)
			return a
		}
		if ctx.Err() != nil || errs.ClassOf(err) != errs.Transient {
			a.err = err
			return a
		}
		a.failed++
	}
}
