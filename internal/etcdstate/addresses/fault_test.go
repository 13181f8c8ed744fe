package addresses

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"burrow.dev/burrow/internal/devstacktest"
)

const (
	// workerLockTTL is short, so that a dead holder is waited for often.
	workerLockTTL = 2 * time.Second
	// holderTries is how many workers are stopped to find the one that has the lock.
	holderTries = 40
	// checkTimeout of one register's history.
	checkTimeout = 20 * time.Second
)

// fault is what goes wrong while workers work.
type fault string

const (
	holderKilled  fault = "holders killed"
	holderStopped fault = "holders stopped past their lease"
	leaderKilled  fault = "leaders killed"
)

// campaign is a run of the fault test.
type campaign struct {
	rounds, processes, goroutines int
	// operations that have ended, a round.
	operations int
	faults     []fault // of a round, in random order and at random times
}

var (
	shortCampaign = campaign{rounds: 1, processes: 3, goroutines: 8, operations: 1000, faults: []fault{holderKilled, holderStopped, leaderKilled}}
	longCampaign  = campaign{
		rounds: 20, processes: 8, goroutines: 16, operations: 5000,
		faults: []fault{holderKilled, holderKilled, holderKilled, holderStopped, holderStopped, leaderKilled},
	}
)

// Killed and stopped holders of the lock, an etcd that loses its leader, responses that are
// lost after the commit; owners that several processes ask for and release at once: whatever
// happens, no address has two owners, no owner has two addresses or another one than it was
// told, what is reserved is not handed out, and nothing is leaked.
//
// BURROW_FAULTS=1 is the long form; BURROW_SEED repeats the calls and faults of a run, though
// not their timing.
func TestNoAddressIsSharedWhateverDies(t *testing.T) {
	c := shortCampaign
	if os.Getenv("BURROW_FAULTS") != "" {
		c = longCampaign
	}
	seed := rand.Uint64()
	if text := os.Getenv("BURROW_SEED"); text != "" {
		var err error
		seed, err = strconv.ParseUint(text, 10, 64)
		require.NoError(t, err)
	}
	s := &siege{
		t: t, campaign: c, seed: seed, random: rand.New(rand.NewPCG(seed, 0)),
		cluster: devstacktest.StartEtcdCluster(t, 3), happened: map[fault]int{}, outcomes: map[string]int{},
	}
	began := time.Now()
	t.Logf("seed %d", seed)
	for round := range c.rounds {
		s.round(round)
	}
	t.Logf("%d operations, %d of unknown outcome, by %d processes with %d goroutines each in %s; 0 duplicates, 0 leaks; seed %d",
		s.ended, s.unknown, s.started, c.goroutines, time.Since(began).Round(time.Second), seed)
	t.Logf("%v, the real holder %d times; %v", s.happened, s.realHolders, s.outcomes)
}

// siege is a campaign under way.
type siege struct {
	campaign
	t       *testing.T
	seed    uint64
	random  *rand.Rand
	cluster *devstacktest.EtcdCluster

	started, ended, unknown, realHolders int
	happened                             map[fault]int
	outcomes                             map[string]int

	// Of the round.
	p       process
	uid     string
	counted atomic.Int64
	all     []*workerProcess
	living  []*workerProcess
}

// round is one network's life: its history is checked, and nothing may be left of it.
func (s *siege) round(n int) {
	t := s.t
	began := time.Now()
	s.p = newProcessOn(t, s.cluster.Config(), none)
	s.uid = s.p.settle(t, faultSubnets...)
	s.counted.Store(0)
	s.all, s.living = nil, nil
	for range s.processes {
		s.living = append(s.living, s.start())
	}
	faults := slices.Clone(s.faults)
	s.random.Shuffle(len(faults), func(i, j int) { faults[i], faults[j] = faults[j], faults[i] })
	for i, f := range faults {
		s.await((i*s.operations + s.random.IntN(s.operations)) / len(faults))
		s.strike(f)
	}
	s.await(s.operations)
	for _, w := range s.living {
		w.finish()
	}
	h := record(s.calls())
	owners := s.p.readFinal(t, s.uid, h)
	checking := time.Now()
	if broken := h.check(checkTimeout); len(broken) > 0 {
		register, _, _ := strings.Cut(broken[0], ": ")
		file := filepath.Join(os.TempDir(), "burrow-history.txt")
		require.NoError(t, os.WriteFile(file, []byte(h.tell(register)), 0o600))
		require.FailNow(t, "histories that cannot be", "round %d: %v; the first is in %s", n, broken, file)
	}
	requireConsistent(t, s.p, s.uid)
	s.clear(owners)
	t.Logf("round %d: %d calls in %s, %d registers checked in %s", n, h.calls, checking.Sub(began).Round(time.Millisecond), len(h.registers), time.Since(checking).Round(time.Millisecond))
	s.ended += int(s.counted.Load())
}

// clear releases what the workers left: then nothing is there.
func (s *siege) clear(owners map[string]netip.Addr) {
	t := s.t
	var prefixes []string
	for owner := range owners {
		prefixes = append(prefixes, owner[:strings.IndexByte(owner, '/')+1])
	}
	require.NoError(t, s.p.Release(t.Context(), s.uid, prefixes...))
	require.NoError(t, s.p.Unreserve(t.Context(), s.uid, wholePool))
	usage, err := s.p.Usage(t.Context(), s.uid)
	require.NoError(t, err)
	for _, subnet := range usage.Subnets {
		require.Zero(t, subnet.Used)
		require.Zero(t, subnet.Reserved)
		require.Equal(t, subnet.Size, subnet.Free)
	}
	requireConsistent(t, s.p, s.uid)
	require.NoError(t, s.p.Forget(t.Context(), s.uid))
	left, err := s.p.store.KeysBelow(t.Context(), "ipam/"+s.uid)
	require.NoError(t, err)
	require.Empty(t, left, "nothing leaked")
}

func (s *siege) start() *workerProcess {
	s.started++
	return s.launch(orders{
		Name: fmt.Sprintf("w%d", s.started), Endpoints: s.cluster.Endpoints(), Prefix: "/test/" + s.t.Name(),
		NetworkUID: s.uid, Goroutines: s.goroutines, LoseOneIn: 25, Seed: s.seed + uint64(s.started),
	})
}

// await waits until the workers have ended so many operations.
func (s *siege) await(operations int) {
	s.t.Helper()
	require.Eventually(s.t, func() bool { return s.counted.Load() >= int64(operations) }, 5*time.Minute, time.Millisecond)
}

func (s *siege) strike(f fault) {
	t := s.t
	s.happened[f]++
	switch f {
	case holderKilled:
		i := s.stopHolder()
		s.living[i].signal(syscall.SIGKILL)
		<-s.living[i].done
		s.living[i].died = s.barrier()
		s.living[i] = s.start()
	case holderStopped:
		i := s.stopHolder()
		s.barrier()
		s.living[i].signal(syscall.SIGCONT)
	case leaderKilled:
		leader := s.cluster.Leader(t.Context())
		s.cluster.Kill(leader)
		s.cluster.Leader(t.Context())
		s.await(int(s.counted.Load()) + 20) // two members go on
		s.cluster.Restart(leader)
	}
}

// barrier returns when the network's lock was had: no transaction of who died before, or was
// stopped, can succeed any more. It gives the time.
func (s *siege) barrier() int64 {
	s.t.Helper()
	held, err := s.p.store.Lock(s.t.Context(), keys{s.p.store, s.uid}.lock())
	require.NoError(s.t, err)
	defer held.Unlock(s.t.Context())
	return time.Now().UnixNano()
}

// stopHolder stops the worker that has the lock; after many tries, any.
func (s *siege) stopHolder() int {
	for range holderTries {
		i := s.holder()
		if i < 0 {
			i = s.random.IntN(len(s.living))
		}
		s.living[i].signal(syscall.SIGSTOP)
		if s.holder() == i {
			s.realHolders++
			return i
		}
		s.living[i].signal(syscall.SIGCONT)
	}
	i := s.random.IntN(len(s.living))
	s.living[i].signal(syscall.SIGSTOP)
	return i
}

// holder gives the worker whose session has the lock, or -1.
func (s *siege) holder() int {
	prefix := s.p.store.Key("locks", keys{s.p.store, s.uid}.lock(), "")
	resp, err := s.p.store.Client().Get(s.t.Context(), prefix, clientv3.WithFirstCreate()...)
	if err != nil || len(resp.Kvs) == 0 {
		return -1
	}
	lease := resp.Kvs[0].Lease
	return slices.IndexFunc(s.living, func(w *workerProcess) bool { return w.has(lease) })
}

// calls gives what all workers did. A call of unknown outcome has had its effect, if any,
// when its next attempt has ended: that one had the lock, or found the effect. What a killed
// worker had asked for has, when somebody else had the lock.
func (s *siege) calls() []call {
	end := time.Now().UnixNano()
	var out []call
	for client, w := range s.all {
		ended := map[int]note{}
		for _, n := range w.notes {
			if n.Ended != "" {
				ended[n.ID] = n
				s.outcomes[string(n.Ended)]++
			}
		}
		last := end
		if w.died != 0 {
			last = w.died
		}
		// Attempts follow one another with the same call, and nothing tells whose they are:
		// the next known end of an equal call is not before that of its own next attempt.
		next := map[string]int64{}
		for _, n := range slices.Backward(w.notes) {
			if n.Verb == "" {
				continue
			}
			c := call{client: client, note: n, end: ended[n.ID], back: ended[n.ID].At}
			same := n
			same.ID, same.At = 0, 0
			text, _ := json.Marshal(same)
			switch c.end.Ended {
			case unknown:
				s.unknown++
				c.back = last
				if at, ok := next[string(text)]; ok {
					c.back = at
				}
			case "":
				s.unknown++
				c.back = last
			default:
				next[string(text)] = max(next[string(text)], c.end.At)
			}
			out = append(out, c)
		}
	}
	return out
}
