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

	guests "burrow.dev/burrow/activities/guest"
	"burrow.dev/burrow/internal/ansiblex"
	"burrow.dev/burrow/internal/config"
	"burrow.dev/burrow/internal/keylock"
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

// Guests logs in to servers. *guest.Activities are some.
type Guests interface {
	Shell(ctx context.Context, in guests.ShellIn) (*guests.Shell, error)
}

// Options are what the activities work with.
type Options struct {
	// RunsDir holds a folder for each run; every folder above it must be passable for
	// others. config.Worker.RunsDir.
	RunsDir string
	// GalaxyDir keeps the roles and collections that requirements files name; the same holds
	// for it. config.Worker.GalaxyDir.
	GalaxyDir string
	// User runs the playbooks; default config.AnsibleUser. It must exist when a run starts.
	User string
	// Burrow is the program that ssh starts as "<Burrow> dial --socket PATH SERVER";
	// default this program. Where User may not reach it, a copy is made in RunsDir.
	Burrow string
	Blobs  Blobs
	// Dialer and Keys are needed by Run only.
	Dialer Dialer
	Keys   Keys
	// Guests logs in to servers whose playbooks run inside them.
	Guests Guests
	// Secrets gives what manifests name as secret:NAME.
	Secrets Secrets
	Log     *slog.Logger // default slog.Default
}

// Activities check and run playbooks. Safe for concurrent use.
type Activities struct {
	o    Options
	beat func(context.Context, Progress)
	// askEvery is the pause between questions to a guest.
	askEvery time.Duration
	// installing is locked by what is installed.
	installing keylock.Locks

	mu     sync.Mutex
	active map[string]*activeRun // by run id
}

// activeRun is a run of this process.
type activeRun struct {
	record ansiblex.Record
	cancel context.CancelCauseFunc
	done   chan struct{}
}

// New makes the activities. RunsDir, GalaxyDir and Blobs are required.
func New(o Options) (*Activities, error) {
	if o.RunsDir == "" || o.GalaxyDir == "" || o.Blobs == nil {
		return nil, errors.New("ansible activities: runs folder, galaxy folder and blob store are required")
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
	return &Activities{o: o, beat: beat, askEvery: askEvery, active: map[string]*activeRun{}}, nil
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
