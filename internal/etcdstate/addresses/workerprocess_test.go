package addresses

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"

	"github.com/stretchr/testify/require"
)

// workerProcess is a worker that can be killed, with all it told.
type workerProcess struct {
	cmd   *exec.Cmd
	stdin io.Closer
	done  chan struct{}
	died  int64 // when nothing it did can have an effect any more; 0 unless it was killed

	mu     sync.Mutex
	notes  []note
	leases map[int64]bool
}

func (s *siege) launch(o orders) *workerProcess {
	t := s.t
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
	w := &workerProcess{cmd: cmd, stdin: stdin, done: make(chan struct{}), leases: map[int64]bool{}}
	s.all = append(s.all, w)
	go func() {
		defer close(w.done)
		lines := bufio.NewScanner(stdout)
		for lines.Scan() {
			var n note
			if json.Unmarshal(lines.Bytes(), &n) != nil { // a killed one's last line may be half
				continue
			}
			w.take(n)
			if n.Ended != "" && n.Ended != unknown {
				s.counted.Add(1)
			}
		}
		_ = cmd.Wait()
		if stderr.Len() > 0 {
			t.Log(stderr.String())
		}
	}()
	t.Cleanup(func() { // a test that fails leaves nobody behind
		w.signal(syscall.SIGKILL)
		<-w.done
	})
	return w
}

func (w *workerProcess) take(n note) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if n.Lease != 0 {
		w.leases[n.Lease] = true
		return
	}
	w.notes = append(w.notes, n)
}

func (w *workerProcess) has(lease int64) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.leases[lease]
}

func (w *workerProcess) signal(s syscall.Signal) { _ = w.cmd.Process.Signal(s) }

// finish lets the worker bring what it began to its end.
func (w *workerProcess) finish() {
	_ = w.stdin.Close()
	<-w.done
}
