package etcdstate

import (
	"crypto/tls"
	"errors"
	"fmt"
	"strings"
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

// fill writes below filling/ until etcd takes no more.
func fill(t *testing.T, s *Store) {
	t.Helper()
	filling := strings.Repeat("x", 1<<20)
	var err error
	for n := 0; err == nil; n++ {
		require.Less(t, n, 100, "the quota stops it")
		_, err = s.client.Put(t.Context(), fmt.Sprintf("filling/%d", n), filling)
	}
}

func TestFullEtcdIsAnOperatorsMatterUntilItHasRoomAgain(t *testing.T) {
	t.Parallel()
	const quota = 8 << 20
	cluster := devstacktest.StartEtcdCluster(t, 3, devstacktest.ClusterOptions{QuotaBytes: quota})
	s := openCluster(t, cluster.Config(), Options{})
	create(t, s, "db")
	fill(t, s)
	isFull := func(err error) {
		t.Helper()
		require.ErrorIs(t, err, errs.ErrNoSpace)
		require.Equal(t, errs.Operator, errs.ClassOf(err))
	}
	_, err := s.Create(t.Context(), server("new", "u"))
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
	// The other members compact after the one that answered: only then is there room to give back.
	for _, endpoint := range cluster.Endpoints() {
		require.Eventually(t, func() bool {
			if _, err := s.client.Defragment(within(t), endpoint); err != nil {
				return false
			}
			status, err := s.client.Status(within(t), endpoint)
			return err == nil && status.DbSize < quota/2
		}, 30*time.Second, 50*time.Millisecond, endpoint)
	}
	_, err = s.client.AlarmDisarm(t.Context(), &clientv3.AlarmMember{})
	require.NoError(t, err)
	create(t, s, "new")
	held, err := s.Lock(t.Context(), "x")
	require.NoError(t, err)
	held.Unlock(t.Context())
}
