package installation

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/internal/gateway"
	"burrow.dev/burrow/internal/supervise"
)

// Names of the parts.
const (
	DevstackPart = "devstack"
	WorkerPart   = "worker"
)

const (
	// devstackGrace is more than the devstack's own limits for Temporal and etcd together.
	devstackGrace = 25 * time.Second
	// workerGrace lets activities notice the end and give back what they hold; what is
	// cut off goes on after the next start.
	workerGrace = 30 * time.Second
)

// StopGrace is how long a part may take to stop.
func StopGrace(part string) time.Duration {
	if part == WorkerPart {
		return workerGrace
	}
	return devstackGrace
}

// DevstackReport is what burrow-devstack writes when it serves.
type DevstackReport struct {
	PID             int    `json:"pid"`
	TemporalAddress string `json:"temporalAddress"`
	Namespace       string `json:"namespace"`
	WebUI           string `json:"webUI"`
	EtcdEndpoint    string `json:"etcdEndpoint"`
}

// FindDevstack gives the path asked for, else burrow-devstack beside this program,
// else the one in PATH.
func FindDevstack(asked, self string) (string, error) {
	if asked != "" {
		if _, err := os.Stat(asked); err != nil {
			return "", errs.NewOperator("burrow-devstack", "find", err, "correct --devstack")
		}
		return filepath.Abs(asked)
	}
	beside := filepath.Join(filepath.Dir(self), "burrow-devstack")
	if _, err := os.Stat(beside); err == nil {
		return beside, nil
	}
	found, err := exec.LookPath("burrow-devstack")
	if err != nil {
		return "", errs.NewOperator("burrow-devstack", "find", errs.Reason("%w: neither %s nor in PATH", errs.ErrNotFound, beside),
			"build it (make build), or name it with --devstack")
	}
	return filepath.Abs(found)
}

// Parts are the devstack and, once that serves, the worker with both roles. burrow is
// this program's path.
func (c *Configuration) Parts(burrow, devstack string) ([]supervise.Part, error) {
	configuration, err := json.Marshal(c.Worker)
	if err != nil {
		return nil, fmt.Errorf("%s: encode: %w", c.Folder.WorkerFile(), err)
	}
	stack := supervise.Part{
		Name: DevstackPart,
		Command: supervise.Command{Path: devstack, Args: []string{
			"serve", "--data-dir", string(c.Folder), "--tls-dir", c.Folder.TLS(),
			"--temporal-port", strconv.Itoa(c.Ports.Temporal), "--ui-port", strconv.Itoa(c.Ports.WebUI),
			"--etcd-port", strconv.Itoa(c.Ports.Etcd), "--ready-file", c.Folder.DevstackReport(),
		}},
		Ready:     c.devstackReady,
		StopGrace: devstackGrace,
	}
	worker := supervise.Part{
		Name:      WorkerPart,
		Command:   supervise.Command{Path: burrow, Args: []string{"worker", "--config", c.Folder.WorkerFile(), "--roles", "control,host"}},
		Ready:     c.workerReady,
		StopGrace: workerGrace,
	}
	stack.Version = digest(stack.Command, nil)
	worker.Version = digest(worker.Command, configuration)
	return []supervise.Part{stack, worker}, nil
}

// digest changes whenever a process that runs would not be what is wanted now.
func digest(command supervise.Command, configuration []byte) string {
	hash := sha256.New()
	for _, arg := range command.Args {
		fmt.Fprintf(hash, "%q ", arg)
	}
	hash.Write(configuration)
	return hex.EncodeToString(hash.Sum(nil))[:16]
}

// devstackReady reads the report: Temporal serves with the namespace, etcd and the Web UI do.
func (c *Configuration) devstackReady(_ context.Context, pid int) error {
	report, err := c.Folder.ReadDevstackReport()
	if err != nil {
		return err
	}
	if report.PID != pid {
		return fmt.Errorf("burrow-devstack: the report is of pid %d", report.PID)
	}
	return nil
}

// ReadDevstackReport reads the report of the devstack that serves, or says that none does.
func (f Folder) ReadDevstackReport() (DevstackReport, error) {
	var report DevstackReport
	text, err := os.ReadFile(f.DevstackReport())
	if errors.Is(err, fs.ErrNotExist) {
		return report, errors.New("burrow-devstack: does not serve yet")
	}
	if err != nil {
		return report, fmt.Errorf("burrow-devstack: read report: %w", err)
	}
	if err := json.Unmarshal(text, &report); err != nil {
		return report, fmt.Errorf("burrow-devstack: read report: %w", err)
	}
	return report, nil
}

// workerReady asks the gateway who is there.
func (c *Configuration) workerReady(ctx context.Context, _ int) error {
	if _, err := os.Lstat(c.Folder.Socket()); err != nil {
		return fmt.Errorf("burrow worker: no gateway yet: %w", err)
	}
	client, err := gateway.Dial(ctx, c.Client.Gateway)
	if err != nil {
		return err
	}
	if waiting := client.Info().Waiting; waiting != "" {
		err = fmt.Errorf("burrow worker: waits: %s", waiting)
	}
	return errors.Join(err, client.Close())
}
