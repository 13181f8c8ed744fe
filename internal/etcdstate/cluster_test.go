package etcdstate

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sync/errgroup"

	"burrow.dev/burrow/internal/config"
	"burrow.dev/burrow/internal/devstacktest"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/internal/pki"
	"burrow.dev/burrow/manifest"
)

// faultPatience bounds what follows an election or a member's start.
const faultPatience = time.Minute

// long chooses the tests' long forms.
func long() bool { return os.Getenv("BURROW_FAULTS") != "" }

// rounds is how often the faults are gone through.
func rounds() int {
	if long() {
		return 8
	}
	return 1
}

func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), faultPatience)
	t.Cleanup(cancel)
	return ctx
}

func openCluster(t *testing.T, cfg config.Etcd, opts Options) *Store {
	t.Helper()
	store, err := Open(cfg, opts)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	return store
}

// crew does the same work again and again, in several goroutines, while faults happen.
type crew struct {
	t    *testing.T
	stop context.CancelFunc
	wg   sync.WaitGroup

	done   atomic.Int64 // pieces of work that succeeded
	failed atomic.Int64 // that failed, though it may have taken effect

	mu       sync.Mutex
	terminal error
}

// employ starts n goroutines. Work that fails is one of the transient errors, or the test fails.
func employ(t *testing.T, n int, work func(ctx context.Context, worker int) error) *crew {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	c := &crew{t: t, stop: cancel}
	for i := range n {
		c.wg.Go(func() {
			for ctx.Err() == nil {
				err := work(context.WithoutCancel(ctx), i) // what was begun is brought to its end
				if err == nil {
					c.done.Add(1)
					continue
				}
				c.failed.Add(1)
				if errs.ClassOf(err) != errs.Transient {
					c.mu.Lock()
					c.terminal = err
					c.mu.Unlock()
					return
				}
			}
		})
	}
	t.Cleanup(c.finish)
	return c
}

// progress waits until every worker, on average, has done some work from now on.
func (c *crew) progress() {
	c.t.Helper()
	const pieces = 20
	goal := c.done.Load() + pieces
	require.Eventually(c.t, func() bool { return c.done.Load() >= goal }, faultPatience, 10*time.Millisecond)
}

// failure waits until some work has failed from now on.
func (c *crew) failure() {
	c.t.Helper()
	goal := c.failed.Load() + 1
	require.Eventually(c.t, func() bool { return c.failed.Load() >= goal }, faultPatience, 10*time.Millisecond)
}

func (c *crew) finish() {
	c.t.Helper()
	c.stop()
	c.wg.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	require.NoError(c.t, c.terminal, "nobody gets a terminal error for a fault of etcd")
}

// goThroughFaults makes each fault of a cluster of three, and mends it, while the crew works.
func goThroughFaults(t *testing.T, cluster *devstacktest.EtcdCluster, c *crew) {
	t.Helper()
	c.progress()
	for range rounds() {
		leader := cluster.Leader(within(t))
		cluster.Kill(leader)
		c.progress()
		cluster.Restart(leader)

		follower := (cluster.Leader(within(t)) + 1) % 3
		cluster.Kill(follower)
		c.progress()
		cluster.Restart(follower)

		if long() { // it takes keepaliveTime until a client leaves a member that hangs
			leader = cluster.Leader(within(t))
			cluster.Stop(leader)
			c.progress()
			cluster.Continue(leader)
		}

		first := cluster.Leader(within(t))
		second := (first + 1) % 3
		cluster.Kill(first, second)
		c.failure()
		cluster.Restart(first, second)
		c.progress()
	}
	c.finish()
	cluster.AwaitHealthy(within(t))
}

// Compare-and-swap and watch: the generation counts updates, so a lost update is a
// generation written twice, and a lost event is one that is missing. When the answer to an
// update is lost, the update is made again: that is another generation.
func TestNoUpdateAndNoEventIsLostOrDoubledWhateverMemberDies(t *testing.T) {
	t.Parallel()
	cluster := devstacktest.StartEtcdCluster(t, 3)
	stores := []*Store{openCluster(t, cluster.Config(), Options{}), openCluster(t, cluster.Config(), Options{})}
	create(t, stores[0], "db")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	events, err := openCluster(t, cluster.Config(), Options{}).Watch(ctx, manifest.KindServer)
	require.NoError(t, err)
	require.Equal(t, "Put db 0", next(t, events))
	require.Equal(t, "Synced", next(t, events))
	var seen []int64
	var last atomic.Int64
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for e := range events {
			seen = append(seen, e.Record.Metadata.Generation)
			last.Store(e.Record.Metadata.Generation)
		}
	}()

	var asked atomic.Int64
	c := employ(t, 4, func(ctx context.Context, n int) error {
		_, err := stores[n%2].Update(ctx, manifest.KindServer, "db", func(r *manifest.Record) error {
			asked.Add(1)
			r.Metadata.Generation++
			return nil
		})
		return err
	})
	goThroughFaults(t, cluster, c)
	rec, err := stores[0].Get(within(t), manifest.KindServer, "db")
	require.NoError(t, err)
	t.Logf("%d updates, %d failed", c.done.Load(), c.failed.Load())
	require.GreaterOrEqual(t, rec.Metadata.Generation, c.done.Load(), "every acknowledged update is there")
	require.LessOrEqual(t, rec.Metadata.Generation, asked.Load(), "and none that nobody asked for")
	require.Eventually(t, func() bool { return last.Load() == rec.Metadata.Generation }, faultPatience, 10*time.Millisecond)
	cancel()
	<-ended
	require.Len(t, seen, int(rec.Metadata.Generation))
	for i, generation := range seen {
		require.Equal(t, int64(i+1), generation, "every change once, in order")
	}
}

// Each hold of the lock reads a number and writes the next one, comparing only that it
// still holds the lock: two holders at once would write one number twice. The client
// may repeat a write whose answer was lost, so each has a mark of its own.
func TestLockedWritesFollowEachOtherWhateverMemberDies(t *testing.T) {
	t.Parallel()
	cluster := devstacktest.StartEtcdCluster(t, 3)
	opts := Options{LockTTL: 2 * time.Second}
	stores := []*Store{openCluster(t, cluster.Config(), opts), openCluster(t, cluster.Config(), opts), openCluster(t, cluster.Config(), opts)}
	const counter = "counter"
	var marks atomic.Int64
	c := employ(t, 6, func(ctx context.Context, n int) error {
		s := stores[n%3]
		held, err := s.Lock(ctx, "x")
		if err != nil {
			return err
		}
		defer held.Unlock(ctx)
		got, err := s.client.Get(ctx, counter)
		if err != nil {
			return Translate(ctx, counter, "read", err)
		}
		number := int64(0)
		if len(got.Kvs) > 0 {
			if number, _, err = parseCount(got.Kvs[0].Value); err != nil {
				return err
			}
		}
		write := clientv3.OpPut(counter, fmt.Sprintf("%d %d", number+1, marks.Add(1)))
		resp, err := s.client.Txn(ctx).If(held.IsOwner()).Then(write).Commit()
		if err != nil {
			return Translate(ctx, counter, "write", err)
		}
		if !resp.Succeeded {
			return errs.NewTransient(counter, "write", errors.New("the lock was lost"))
		}
		return nil
	})
	goThroughFaults(t, cluster, c)
	t.Logf("%d holds, %d failed", c.done.Load(), c.failed.Load())
	ctx, cancel := context.WithCancel(within(t))
	defer cancel()
	now, err := stores[0].client.Get(ctx, counter)
	require.NoError(t, err)
	var number, mark int64
	for resp := range stores[0].client.Watch(ctx, counter, clientv3.WithRev(1)) {
		require.NoError(t, resp.Err())
		for _, e := range resp.Events {
			n, m, err := parseCount(e.Kv.Value)
			require.NoError(t, err)
			if m == mark {
				continue
			}
			require.Equal(t, number+1, n, "two holders wrote at once")
			number, mark = n, m
		}
		if resp.Events[len(resp.Events)-1].Kv.ModRevision >= now.Kvs[0].ModRevision {
			break
		}
	}
	require.GreaterOrEqual(t, number, c.done.Load(), "every acknowledged write is there")
}

// parseCount reads what a hold of the lock wrote: a number and the write's mark.
func parseCount(value []byte) (number, mark int64, err error) {
	_, err = fmt.Sscan(string(value), &number, &mark)
	return number, mark, err
}

// The watcher's only member sleeps while records change and etcd forgets how.
func TestWatchSurvivesACompactionWhileItsMemberWasDead(t *testing.T) {
	t.Parallel()
	cluster := devstacktest.StartEtcdCluster(t, 3)
	dead := (cluster.Leader(within(t)) + 1) % 3
	others := config.Etcd{}
	for i, endpoint := range cluster.Endpoints() {
		if i != dead {
			others.Endpoints = append(others.Endpoints, endpoint)
		}
	}
	direct := openCluster(t, others, Options{})
	for _, name := range []string{"changed", "gone", "same"} {
		create(t, direct, name)
	}
	events, err := openStore(t, cluster.Endpoints()[dead], Options{}).Watch(t.Context(), manifest.KindServer)
	require.NoError(t, err)
	for range 4 {
		next(t, events)
	}
	cluster.Kill(dead)
	for n := range int64(5) {
		generation(t, direct, "changed", n+1)
	}
	require.NoError(t, direct.Delete(t.Context(), manifest.KindServer, "gone", "gone"))
	create(t, direct, "new")
	resp, err := direct.client.Get(t.Context(), "x")
	require.NoError(t, err)
	_, err = direct.client.Compact(t.Context(), resp.Header.Revision)
	require.NoError(t, err)
	cluster.Restart(dead)
	require.Equal(t, "Put changed 5", next(t, events))
	require.Equal(t, "Put new 0", next(t, events))
	require.Equal(t, "Delete gone 0", next(t, events))
	generation(t, direct, "same", 1)
	require.Equal(t, "Put same 1", next(t, events), "what did not change is not sent again")
}

func TestWorkerFailsOverAndIsToldWhileThereIsNoQuorum(t *testing.T) {
	t.Parallel()
	dir, otherDir := t.TempDir(), t.TempDir()
	for _, d := range []string{dir, otherDir} {
		_, err := pki.Ensure(d, pki.Options{GroupID: -1})
		require.NoError(t, err)
	}
	cluster := devstacktest.StartEtcdCluster(t, 3, devstacktest.ClusterOptions{TLSDir: dir})
	s := openCluster(t, cluster.Config(), Options{})
	create(t, s, "db")
	read := func() error {
		_, err := s.Get(t.Context(), manifest.KindServer, "db")
		return err
	}
	var strangers errgroup.Group // each takes as long as a member that is away
	for name, files := range map[string]*config.TLS{
		"the command line's certificate": pki.Files(dir, "client"),
		"another authority's worker":     {CA: pki.Files(dir, "worker").CA, Cert: pki.Files(otherDir, "worker").Cert, Key: pki.Files(otherDir, "worker").Key},
	} {
		stranger := openCluster(t, config.Etcd{Endpoints: cluster.Endpoints(), TLS: files}, Options{})
		strangers.Go(func() error {
			if _, err := stranger.Get(t.Context(), manifest.KindServer, "db"); !errors.Is(err, errs.ErrUnavailable) {
				return fmt.Errorf("%s is admitted: %w", name, err)
			}
			return nil
		})
	}
	for i := range cluster.Endpoints() { // whichever it talks to is one of them
		cluster.Kill(i)
		require.Eventually(t, func() bool { return read() == nil }, faultPatience, 10*time.Millisecond, "member %d is dead", i)
		cluster.Restart(i)
	}
	require.NoError(t, strangers.Wait())

	cluster.Kill(0, 1)
	begun := time.Now()
	var without errgroup.Group
	for name, call := range map[string]func() error{
		"read": read,
		"update": func() error {
			_, err := s.Update(t.Context(), manifest.KindServer, "db", func(*manifest.Record) error { return nil })
			return err
		},
		"lock": func() error {
			_, err := s.Lock(t.Context(), "x")
			return err
		},
		"health": func() error {
			health, err := s.Health(t.Context())
			if len(health.Members) != 3 || health.Members[2].Err != nil {
				return fmt.Errorf("the member that lives is left out: %+v", health)
			}
			return err
		},
	} {
		without.Go(func() error {
			err := call()
			if !errors.Is(err, errs.ErrUnavailable) || errs.ClassOf(err) != errs.Transient {
				return fmt.Errorf("%s without a quorum: %w", name, err)
			}
			return nil
		})
	}
	require.NoError(t, without.Wait())
	require.Less(t, time.Since(begun), requestAttempts*requestTimeout+5*time.Second)
	cluster.Restart(0, 1)
	require.Eventually(t, func() bool { return read() == nil }, faultPatience, 10*time.Millisecond)
	cluster.AwaitHealthy(within(t))
	health, err := s.Health(within(t))
	require.NoError(t, err)
	leaders := 0
	for _, m := range health.Members {
		require.NoError(t, m.Err)
		if m.Leader {
			leaders++
		}
	}
	require.Equal(t, 1, leaders)
	members, err := s.client.MemberList(within(t))
	require.NoError(t, err)
	require.Len(t, members.Members, 3)
	for role, admitted := range map[string]bool{"server": true, "worker": false, "client": false} {
		require.Equal(t, admitted, meetsPeer(t, members.Members[0].PeerURLs[0], pki.Files(dir, role)), "%s as a peer", role)
	}
}

// meetsPeer reports whether a member's peer listener serves whoever shows these files.
func meetsPeer(t *testing.T, peerURL string, files *config.TLS) bool {
	t.Helper()
	cfg, err := files.Client()
	require.NoError(t, err)
	cfg.NextProtos = []string{"http/1.1"}
	conn, err := tls.Dial("tcp", strings.TrimPrefix(peerURL, "https://"), cfg)
	if err != nil {
		return false
	}
	defer conn.Close()
	require.NoError(t, conn.SetDeadline(time.Now().Add(patience)))
	_, err = fmt.Fprintf(conn, "GET /version HTTP/1.1\r\nHost: x\r\n\r\n")
	if err != nil {
		return false
	}
	_, err = conn.Read(make([]byte, 1)) // TLS 1.3: a client learns here that it was refused
	return err == nil
}

func TestFullEtcdIsAnOperatorsMatterUntilItHasRoomAgain(t *testing.T) {
	t.Parallel()
	cluster := devstacktest.StartEtcdCluster(t, 3, devstacktest.ClusterOptions{QuotaBytes: 8 << 20})
	s := openCluster(t, cluster.Config(), Options{})
	create(t, s, "db")
	filling := strings.Repeat("x", 1<<20)
	var err error
	for n := 0; err == nil; n++ {
		require.Less(t, n, 100, "the quota stops it")
		_, err = s.client.Put(t.Context(), fmt.Sprintf("filling/%d", n), filling)
	}
	isFull := func(err error) {
		t.Helper()
		require.ErrorIs(t, err, errs.ErrNoSpace)
		require.Equal(t, errs.Operator, errs.ClassOf(err))
	}
	_, err = s.Create(t.Context(), server("new", "u"))
	isFull(err)
	require.ErrorContains(t, err, "disarm the alarm")
	_, err = s.Update(t.Context(), manifest.KindServer, "db", func(*manifest.Record) error { return nil })
	isFull(err)
	_, err = s.Lock(t.Context(), "x")
	isFull(err)
	_, err = s.Get(t.Context(), manifest.KindServer, "db")
	require.NoError(t, err, "reading goes on")
	require.NoError(t, s.Delete(t.Context(), manifest.KindServer, "db", "db"), "and so does what makes room")
	health, err := s.Health(t.Context())
	require.NoError(t, err)
	require.Contains(t, health.Alarms, "NOSPACE")

	gone, err := s.client.Delete(t.Context(), "filling/", clientv3.WithPrefix())
	require.NoError(t, err)
	_, err = s.client.Compact(t.Context(), gone.Header.Revision, clientv3.WithCompactPhysical())
	require.NoError(t, err)
	for _, endpoint := range cluster.Endpoints() {
		_, err = s.client.Defragment(within(t), endpoint)
		require.NoError(t, err)
	}
	_, err = s.client.AlarmDisarm(t.Context(), &clientv3.AlarmMember{})
	require.NoError(t, err)
	create(t, s, "new")
	held, err := s.Lock(t.Context(), "x")
	require.NoError(t, err)
	held.Unlock(t.Context())
}
