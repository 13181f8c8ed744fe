package installation

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"time"

	"burrow.dev/burrow/internal/config"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/internal/pki"
	"burrow.dev/burrow/internal/supervise"
)

// Configured says that there is a worker.json.
func (f Folder) Configured() bool {
	_, err := os.Lstat(f.WorkerFile())
	return err == nil
}

// Adopt writes a worker.json that says what another one said, for Configure to complete.
// One that is there stays.
func (f Folder) Adopt(prefix string, host config.Host, keys config.Keys) error {
	if f.Configured() {
		return nil
	}
	return writeJSON(f.WorkerFile(), config.Worker{Etcd: config.Etcd{Prefix: prefix}, Host: host, Keys: keys}, 0o600, -1)
}

// AddMasterKey makes a copy of a master key the folder's: its first one, or one beside the
// first. id is the key's. No key that is there is replaced.
func AddMasterKey(first, id string, key []byte) (path string, err error) {
	path = first
	there, err := os.ReadFile(first)
	switch {
	case err == nil && bytes.Equal(there, key):
		return first, nil
	case err == nil:
		path = first + "." + id
	case !errors.Is(err, fs.ErrNotExist):
		return "", errs.NewOperator(first, "read master key", err, "run as root")
	}
	if err := pki.WriteMasterKey(path, key); err != nil {
		return "", errs.NewOperator(path, "write master key", err, "run as root")
	}
	return path, nil
}

// AwaitEtcd waits for the etcd of a restore that was killed: it ends by itself a moment
// later. Hold the folder's lock.
func (f Folder) AwaitEtcd(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, devstackGrace)
	defer cancel()
	tick := time.NewTicker(etcdProbe)
	defer tick.Stop()
	for {
		var of supervise.Identity
		text, err := os.ReadFile(f.restoreProcess())
		if err != nil || json.Unmarshal(text, &of) != nil || !of.Alive() {
			return nil
		}
		select {
		case <-ctx.Done():
			return errs.NewOperator("etcd", "wait for its end", errs.Reason("%w: that of an interrupted restore runs (pid %d)", errs.ErrBusy, of.PID), "end that process")
		case <-tick.C:
		}
	}
}

// restoreProcess tells which process is the etcd of a restore.
func (f Folder) restoreProcess() string { return f.path("run", "restore-etcd.pid") }

// NothingRuns refuses while a part of an earlier `burrow up` lives, whose supervisor may be
// gone. Hold the folder's lock.
func (f Folder) NothingRuns() error {
	states, err := supervise.States(string(f))
	if err != nil {
		return err
	}
	for _, state := range states {
		if state.Alive() {
			return errs.NewPermanent("data directory "+string(f), "use", errs.Reason("%w: %s runs (pid %d)", errs.ErrBusy, state.Name, state.PID), "end it: burrow down")
		}
	}
	return nil
}

// stdinCloses makes the devstack end with us, however we end.
const stdinCloses = "--until-stdin-closes"

// Etcd is an etcd that runs for this process only.
type Etcd struct {
	command *exec.Cmd
	input   io.Closer
	exited  chan struct{}
	stderr  bytes.Buffer
}

// StartEtcd runs the installation's etcd, and nothing else of it, until Stop or the end of
// this process. Hold the folder's lock.
func (c *Configuration) StartEtcd(ctx context.Context, devstack string) (*Etcd, error) {
	if err := c.Folder.AwaitEtcd(ctx); err != nil {
		return nil, err
	}
	report := c.Folder.path("run", "restore-etcd.json")
	e := &Etcd{exited: make(chan struct{})}
	listen := "https://" + net.JoinHostPort(loopback, strconv.Itoa(c.Ports.Etcd))
	e.command = exec.Command(devstack, "etcd", "--data-dir", c.Folder.path("etcd"), "--tls-dir", c.Folder.TLS(),
		"--listen-client", listen, "--ready-file", report, stdinCloses)
	e.command.Stderr = &e.stderr
	e.command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C is ours; its input tells it
	var err error
	if e.input, err = e.command.StdinPipe(); err != nil {
		return nil, fmt.Errorf("etcd: make pipe: %w", err)
	}
	if err := e.command.Start(); err != nil {
		return nil, errs.NewOperator("etcd", "start "+devstack, err, "name burrow-devstack with --devstack")
	}
	go func() {
		defer close(e.exited)
		_ = e.command.Wait() // how it ended is in ProcessState
	}()
	id, err := supervise.IdentityOf(e.command.Process.Pid)
	if err == nil {
		err = writeJSON(c.Folder.restoreProcess(), id, 0o644, -1)
	}
	if err == nil {
		err = e.await(ctx, report)
	}
	if err != nil {
		return nil, errors.Join(err, e.Stop())
	}
	return e, nil
}

const (
	// etcdReady bounds the start of etcd alone, whatever it has to read.
	etcdReady = 2 * time.Minute
	// etcdProbe is how often it is looked for.
	etcdProbe = 20 * time.Millisecond
)

// await waits until the report is of this process.
func (e *Etcd) await(ctx context.Context, report string) error {
	ctx, cancel := context.WithTimeout(ctx, etcdReady)
	defer cancel()
	tick := time.NewTicker(etcdProbe)
	defer tick.Stop()
	for {
		var of DevstackReport
		text, err := os.ReadFile(report)
		if err == nil && json.Unmarshal(text, &of) == nil && of.PID == e.command.Process.Pid {
			return nil
		}
		select {
		case <-e.exited:
			return errs.NewOperator("etcd", "start", errs.Reason("%s\n%s", e.command.ProcessState, bytes.TrimSpace(e.stderr.Bytes())), "see above")
		case <-ctx.Done():
			return errs.NewOperator("etcd", "start", context.Cause(ctx), "")
		case <-tick.C:
		}
	}
}

// Stop ends it in order and waits.
func (e *Etcd) Stop() error {
	_ = e.input.Close() // it ends by that; a second time is harmless
	timer := time.NewTimer(devstackGrace)
	defer timer.Stop()
	select {
	case <-e.exited:
		return nil
	case <-timer.C:
		_ = e.command.Process.Kill()
		<-e.exited
		return errs.NewOperator("etcd", "stop", errs.Reason("it did not end within %s and was killed", devstackGrace), "")
	}
}
