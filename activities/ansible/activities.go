package ansible

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"
	"golang.org/x/crypto/ssh"

	"burrow.dev/burrow/internal/ansiblex"
	"burrow.dev/burrow/internal/config"
)

const (
	// heartbeatEvery lets a cancellation arrive within a second.
	heartbeatEvery = 400 * time.Millisecond
	// defaultTimeout is spec.ansible.timeout when the manifest came without its default.
	defaultTimeout = 2 * time.Hour
	// checkTimeout bounds a syntax check: it parses files, and may start an inventory script.
	checkTimeout = 2 * time.Minute
	// retryPause lets what a task stumbled over (a lock, a mirror) pass.
	retryPause = 2 * time.Second
	// uploadTimeout bounds storing the log when the activity itself is already cancelled.
	uploadTimeout = 30 * time.Second
)

// Blobs is the blob store: bundles come from it, logs go to it.
type Blobs interface {
	Get(ctx context.Context, key string) (io.ReadCloser, error)
	Put(ctx context.Context, key string, r io.Reader) error
	List(ctx context.Context, prefix string) ([]string, error)
}

// Dialer opens a connection inside a network's namespace.
type Dialer interface {
	DialNetwork(ctx context.Context, network, address string) (net.Conn, error)
}

// Keys gives the management key of a server.
type Keys interface {
	Management(ctx context.Context, serverUID string) (ssh.Signer, error)
}

// Options are what the activities work with.
type Options struct {
	// RunsDir holds a folder for each run; every folder above it must be passable for
	// others. config.Worker.RunsDir.
	RunsDir string
	// User runs the playbooks; default config.AnsibleUser. It must exist when a run starts.
	User string
	// Burrow is the program that ssh starts as "<Burrow> dial --socket PATH SERVER";
	// default this program. Where User may not reach it, a copy is made in RunsDir.
	Burrow string
	Blobs  Blobs
	// Dialer and Keys are needed by Run only.
	Dialer Dialer
	Keys   Keys
	Log    *slog.Logger // default slog.Default
}

// Activities check and run playbooks. Safe for concurrent use.
type Activities struct {
	o    Options
	beat func(context.Context, Progress)

	mu     sync.Mutex
	active map[string]*activeRun // by run id
}

// activeRun is a run of this process.
type activeRun struct {
	uids   []string
	cancel context.CancelCauseFunc
	done   chan struct{}
}

// New makes the activities. RunsDir and Blobs are required.
func New(o Options) (*Activities, error) {
	if o.RunsDir == "" || o.Blobs == nil {
		return nil, errors.New("ansible activities: runs folder and blob store are required")
	}
	if o.User == "" {
		o.User = config.AnsibleUser
	}
	if o.Burrow == "" {
		self, err := os.Executable()
		if err != nil {
			return nil, err
		}
		o.Burrow = self
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	return &Activities{o: o, beat: beat, active: map[string]*activeRun{}}, nil
}

// beat sends a heartbeat to Temporal; outside an activity there is nobody to send it to.
func beat(ctx context.Context, p Progress) {
	if activity.IsActivity(ctx) {
		activity.RecordHeartbeat(ctx, p)
	}
}

// account finds the unprivileged user and the program, or says what is missing.
func (a *Activities) account() (ansiblex.User, error) {
	user, err := ansiblex.LookupUser(a.o.User)
	if err != nil {
		return user, err
	}
	_, err = ansiblex.FindPlaybookProgram()
	return user, err
}
