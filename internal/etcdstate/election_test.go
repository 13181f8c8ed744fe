package etcdstate

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"burrow.dev/burrow/internal/devstacktest"
	"burrow.dev/burrow/manifest"
)

// campaign runs a candidate; the channel gives each term it wins.
func campaign(t *testing.T, s *Store, name string) (terms chan *Term, resign func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	terms = make(chan *Term, 10)
	var wg sync.WaitGroup
	wg.Go(func() {
		s.Lead(ctx, "control", name, func(ctx context.Context, term *Term) error {
			terms <- term
			<-ctx.Done()
			return ctx.Err()
		})
	})
	resign = sync.OnceFunc(func() { cancel(); wg.Wait() })
	t.Cleanup(resign)
	return terms, resign
}

func won(t *testing.T, terms <-chan *Term) *Term {
	t.Helper()
	select {
	case term := <-terms:
		return term
	case <-time.After(patience):
		require.FailNow(t, "leadership was not won")
		return nil
	}
}

func TestALeaderThatResignsIsFollowedAtOnce(t *testing.T) {
	t.Parallel()
	endpoint := devstacktest.Etcd(t)
	a, b := openStore(t, endpoint, Options{LockTTL: time.Hour}), openStore(t, endpoint, Options{LockTTL: time.Hour})
	first, resign := campaign(t, a, "a")
	won(t, first)
	second, _ := campaign(t, b, "b")
	require.Eventually(t, func() bool { return len(keys(t, a, "locks/leader")) == 2 }, patience, 5*time.Millisecond)
	leader, err := b.Leader(t.Context(), "control")
	require.NoError(t, err)
	require.Equal(t, "a", leader)
	require.Empty(t, second, "one leads")
	resign()
	won(t, second) // long before the hour of a's lease
}

func keys(t *testing.T, s *Store, folder string) []string {
	t.Helper()
	all, err := s.KeysBelow(t.Context(), folder)
	require.NoError(t, err)
	return all
}

func TestALeaderThatIsCutOffIsFollowedWithinItsLeaseAndCampaignsAgain(t *testing.T) {
	t.Parallel()
	const ttl = 2 * time.Second
	endpoint := devstacktest.Etcd(t)
	direct, line := openStore(t, endpoint, Options{LockTTL: ttl}), newCable(t, endpoint)
	create(t, direct, "db")
	cutOff := openStore(t, line.endpoint(), Options{LockTTL: ttl})
	first, _ := campaign(t, cutOff, "first")
	old := won(t, first)
	second, resign := campaign(t, direct, "second")
	line.setCut(true)
	won(t, second) // nobody gives leadership back: the lease runs out

	line.setCut(false)
	rec, err := direct.Get(t.Context(), manifest.KindServer, "db")
	require.NoError(t, err)
	var wrote bool
	require.Eventually(t, func() bool { // until the line carries again
		wrote, err = old.ReplaceOfLost(t.Context(), "kvm1", rec)
		return err == nil
	}, patience, 20*time.Millisecond)
	require.False(t, wrote, "a term that is over writes nothing")
	resign()
	now := won(t, first)
	wrote, err = now.ReplaceOfLost(t.Context(), "kvm1", rec)
	require.NoError(t, err)
	require.True(t, wrote)
}

func TestWhatALeaderWritesComparesTheHostsLeaseAndTheRecord(t *testing.T) {
	t.Parallel()
	s := newTestStore(t)
	terms, _ := campaign(t, s, "a")
	term := won(t, terms)
	create(t, s, "db")
	rec, err := s.Get(t.Context(), manifest.KindServer, "db")
	require.NoError(t, err)
	wrote, err := s.ReplaceOfLiving(t.Context(), "kvm1", rec)
	require.NoError(t, err)
	require.False(t, wrote, "the host has no lease")

	_, err = s.client.Put(t.Context(), s.Key("alive", "kvm1"), "")
	require.NoError(t, err)
	wrote, err = term.ReplaceOfLost(t.Context(), "kvm1", rec)
	require.NoError(t, err)
	require.False(t, wrote, "the host lives")
	wrote, err = s.ReplaceOfLiving(t.Context(), "kvm1", rec)
	require.NoError(t, err)
	require.True(t, wrote)
	wrote, err = s.ReplaceOfLiving(t.Context(), "kvm1", rec)
	require.NoError(t, err)
	require.False(t, wrote, "the record has changed since it was read")
}

// asLeader makes this test binary a leader that writes as fast as it can.
const asLeader = "BURROW_TEST_LEADER"

// TestLeaderProcess is no test: it is the leader of the test below, in a process that can
// be stopped.
func TestLeaderProcess(t *testing.T) {
	endpoint := os.Getenv(asLeader)
	if endpoint == "" {
		t.Skip("run by TestALeaderStoppedPastItsLeaseWritesNothing")
	}
	s := openStore(t, endpoint, Options{LockTTL: 2 * time.Second})
	s.Lead(t.Context(), "control", "stopped", func(_ context.Context, term *Term) error {
		for said := false; ; said = true {
			rec, err := s.Get(t.Context(), manifest.KindServer, "db")
			require.NoError(t, err)
			rec.Status.Message = "written by the stopped one"
			wrote, err := term.ReplaceOfLost(t.Context(), "kvm1", rec)
			require.NoError(t, err)
			if !said {
				fmt.Println("leads")
			}
			// The other leader writes nothing while we lead, so losing is no conflict.
			if !wrote {
				fmt.Println("refused")
				<-t.Context().Done()
			}
		}
	})
}

func TestALeaderStoppedPastItsLeaseWritesNothing(t *testing.T) {
	t.Parallel()
	endpoint := devstacktest.Etcd(t)
	s := openStore(t, endpoint, Options{LockTTL: 2 * time.Second})
	create(t, s, "db")
	leader := exec.Command(os.Args[0], "-test.run=^TestLeaderProcess$", "-test.v")
	leader.Env = append(os.Environ(), asLeader+"="+endpoint)
	out, err := leader.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, leader.Start())
	t.Cleanup(func() { _ = leader.Process.Kill(); _ = leader.Wait() })
	lines := bufio.NewScanner(out)
	require.True(t, said(lines, "leads"))

	require.NoError(t, leader.Process.Signal(syscall.SIGSTOP))
	terms, _ := campaign(t, s, "next")
	term := won(t, terms)
	rec, err := s.Get(t.Context(), manifest.KindServer, "db")
	require.NoError(t, err)
	rec.Status.Message = "written by the next one"
	wrote, err := term.ReplaceOfLost(t.Context(), "kvm1", rec)
	require.NoError(t, err)
	require.True(t, wrote)
	require.NoError(t, leader.Process.Signal(syscall.SIGCONT))
	require.True(t, said(lines, "refused"))
	rec, err = s.Get(t.Context(), manifest.KindServer, "db")
	require.NoError(t, err)
	require.Equal(t, "written by the next one", rec.Status.Message)
}

// said reads lines until one is text.
func said(lines *bufio.Scanner, text string) bool {
	for lines.Scan() {
		if strings.TrimSpace(lines.Text()) == text {
			return true
		}
	}
	return false
}
