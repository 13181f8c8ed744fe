package addresses

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"

	"burrow.dev/burrow/internal/devstacktest"
	"burrow.dev/burrow/manifest"
)

const (
	// workerLockTTL is short, so that a dead holder is waited for often.
	workerLockTTL = 2 * time.Second
	// pauseOfFaults is between two faults.
	pauseOfFaults = 400 * time.Millisecond
)

// workerProcess is a worker that can be killed, with all it told.
type workerProcess struct {
	cmd   *exec.Cmd
	stdin io.Closer
	done  chan struct{}

	mu    sync.Mutex
	notes []note
}

func startWorker(t *testing.T, o orders) *workerProcess {
	t.Helper()
	text, err := json.Marshal(o)
	require.NoError(t, err)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), workerEnv+"="+string(text))
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	stdin, err := cmd.StdinPipe()
	require.NoError(t, err)
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	w := &workerProcess{cmd: cmd, stdin: stdin, done: make(chan struct{})}
	go func() {
		defer close(w.done)
		lines := bufio.NewScanner(stdout)
		for lines.Scan() {
			var n note
			if json.Unmarshal(lines.Bytes(), &n) == nil { // a killed one's last line may be half
				w.mu.Lock()
				w.notes = append(w.notes, n)
				w.mu.Unlock()
			}
		}
		_ = cmd.Wait()
		if stderr.Len() > 0 {
			t.Log(stderr.String())
		}
	}()
	return w
}

func (w *workerProcess) signal(s syscall.Signal) { _ = w.cmd.Process.Signal(s) }

// finish lets the worker bring what it began to its end.
func (w *workerProcess) finish() {
	_ = w.stdin.Close()
	<-w.done
}

// Killed and stopped holders, a restarted etcd and lost responses: whatever happens, no
// address has two owners, and nothing is leaked.
func TestNoAddressIsSharedWhateverDies(t *testing.T) {
	length, processes := 8*time.Second, 3
	if os.Getenv("BURROW_FAULTS") != "" {
		length, processes = 4*time.Minute, 8
	}
	member := devstacktest.StartEtcd(t)
	p := newProcess(t, member.EtcdEndpoint, none)
	uid := p.settle(t, manifest.Subnet{CIDR: "10.0.0.0/27", Gateway: "10.0.0.1"})
	started := 0
	start := func() *workerProcess {
		started++
		return startWorker(t, orders{
			Name: fmt.Sprintf("w%d", started), Endpoint: member.EtcdEndpoint, Prefix: "/test/" + t.Name(),
			NetworkUID: uid, Goroutines: 4, LoseOneIn: 50,
		})
	}
	var all, living []*workerProcess
	for range processes {
		living = append(living, start())
	}
	all = append(all, living...)
	ticker := time.NewTicker(pauseOfFaults)
	defer ticker.Stop()
	for n, end := 0, time.Now().Add(length); time.Now().Before(end); n++ {
		<-ticker.C
		i := rand.N(len(living))
		switch n % 4 {
		case 0: // a holder dies
			living[i].signal(syscall.SIGKILL)
			<-living[i].done
			living[i] = start()
			all = append(all, living[i])
		case 1: // a holder sleeps past its lease
			stopped := living[i]
			stopped.signal(syscall.SIGSTOP)
			timer := time.NewTimer(workerLockTTL + time.Second)
			<-timer.C
			stopped.signal(syscall.SIGCONT)
		case 3:
			if n%16 == 3 {
				require.NoError(t, member.Kill())
				member.Restart()
			}
		}
	}
	for _, w := range living {
		w.finish()
	}
	held := map[string]netip.Addr{}
	now, err := p.heldBy(t.Context(), keys{p.store, uid}, []string{"w"})
	require.NoError(t, err)
	for _, h := range now {
		held[strings.TrimSuffix(h.owner, "/eth/0")] = h.prefix.Addr()
	}
	operations := history(all, held)
	t.Logf("%d operations of %d processes, %d addresses left by killed ones", len(operations), started, len(held))
	require.Equal(t, porcupine.Ok, porcupine.CheckOperationsTimeout(addressModel, operations, time.Minute))
	requireConsistent(t, p, uid)
	for owner := range held {
		require.NoError(t, p.Release(t.Context(), uid, owner+"/"))
	}
	users, err := p.users(t.Context(), keys{p.store, uid})
	require.NoError(t, err)
	require.Empty(t, users, "nothing leaked")
}

// event is the input of the model: an owner gets an address, or gives it back.
type event struct {
	owner   string
	addr    netip.Addr
	release bool
}

// addressModel is each address as a register of its owner.
var addressModel = porcupine.Model{
	Partition: func(all []porcupine.Operation) [][]porcupine.Operation {
		byAddr := map[netip.Addr][]porcupine.Operation{}
		for _, op := range all {
			byAddr[op.Input.(event).addr] = append(byAddr[op.Input.(event).addr], op)
		}
		var out [][]porcupine.Operation
		for _, ops := range byAddr {
			out = append(out, ops)
		}
		return out
	},
	Init: func() any { return "" },
	Step: func(state, input, _ any) (bool, any) {
		e := input.(event)
		if e.release {
			return state == e.owner, ""
		}
		return state == "", e.owner
	},
}

// history gives what the workers did, with the time within which it took effect. What a
// killed one had asked for is settled by what etcd holds at the end.
func history(workers []*workerProcess, held map[string]netip.Addr) []porcupine.Operation {
	end := time.Now().UnixNano()
	var out []porcupine.Operation
	for client, w := range workers {
		calls, returns, addrs := map[note]int64{}, map[note]int64{}, map[string]netip.Addr{}
		for _, n := range w.notes {
			key := note{Owner: n.Owner, Release: n.Release}
			if !n.Done {
				calls[key] = n.At
				continue
			}
			returns[key] = n.At
			if !n.Release {
				addrs[n.Owner] = n.Addr
			}
		}
		for call, at := range calls {
			back, finished := returns[call]
			addr, got := addrs[call.Owner]
			now, holds := held[call.Owner]
			switch {
			case !call.Release && !finished && !holds: // nothing came of it
				continue
			case call.Release && !finished && holds:
				continue
			case !finished:
				back = end
			}
			if !got {
				addr = now
			}
			out = append(out, porcupine.Operation{ClientId: client, Input: event{call.Owner, addr, call.Release}, Call: at, Return: back})
		}
	}
	return out
}
