package gateway

import (
	"context"
	"io"
	"log/slog"
	"net"
	"time"

	"go4.org/netipx"
	"golang.org/x/crypto/ssh"

	"burrow.dev/burrow/internal/addrspace"
	"burrow.dev/burrow/internal/keyring"
	"burrow.dev/burrow/manifest"
)

// Deps is what a server answers from. Records and Blobs are required, and every worker has
// Secrets and Addresses; a worker without the host role leaves the others nil, and their calls say so.
type Deps struct {
	Info Info
	// Waiting gives Info.Waiting as it is now; nil: ready from the start.
	Waiting func() string
	Records Records
	Blobs   Blobs
	Secrets Secrets
	// Addresses of networks are the same whoever is asked: they are in etcd.
	Addresses Addresses
	Dialer    Dialer
	Keys      Keys
	Consoles  Consoles
	Logs      RunLogs
	// StateStore tells how etcd is; nil where a worker cannot.
	StateStore StateStore
	// Log gets what goes wrong; nil means slog.Default().
	Log *slog.Logger
}

// Info says which worker answers.
type Info struct {
	Version string `json:"version"`
	Host    string `json:"host"`
	// Accelerator is "kvm" or "tcg"; empty without the host role.
	Accelerator string `json:"accelerator,omitempty"`
	// AcceleratorReason says why it is not kvm.
	AcceleratorReason string    `json:"acceleratorReason,omitempty"`
	Roles             []string  `json:"roles,omitempty"`
	Since             time.Time `json:"since"`
	// Waiting says what the worker still waits for before it takes work; empty: it is ready.
	Waiting string `json:"waiting,omitempty"`
}

// Records reads the records in etcd.
type Records interface {
	// Get gives errs.ErrNotFound for a record that is not there.
	Get(ctx context.Context, kind manifest.Kind, name string) (manifest.Record, error)
	// Each calls fn with the records of a kind, by name, holding few of them at a time; it
	// returns fn's error.
	Each(ctx context.Context, kind manifest.Kind, fn func(manifest.Record) error) error
	// EachSummary does the same with the JSON of what lists show of them.
	EachSummary(ctx context.Context, kind manifest.Kind, fn func([]byte) error) error
	// Watch sends the records there are, Synced, then changes, until ctx ends; then it
	// closes the channel. Kind "" is all kinds.
	Watch(ctx context.Context, kind manifest.Kind) (<-chan Event, error)
}

// StateStore asks etcd's members how they are.
type StateStore interface {
	StateStore(ctx context.Context) (StateStoreHealth, error)
}

// StateStoreHealth is how etcd is.
type StateStoreHealth struct {
	Members []StateStoreMember
	// Alarms as etcd names them: "NOSPACE", "CORRUPT". Any one stops writes.
	Alarms []string
	// Leader is the control worker that leads; empty: none does.
	Leader string
	// MasterKey names the one in use; WithoutMasterKey are the hosts whose worker has it not.
	MasterKey        string
	WithoutMasterKey []string
}

// StateStoreMember is one member of etcd. Size is its file, InUse what is not free in it,
// Quota its limit (0: not told), in bytes.
type StateStoreMember struct {
	Endpoint, Version  string
	Size, InUse, Quota int64
	Leader             bool
	// Error says why it does not answer; all else but Endpoint is empty then.
	Error string
}

// EventType says what happened to a record.
type EventType string

// Event types. Synced comes once, after the records there were at the start.
const (
	Put    EventType = "put"
	Delete EventType = "delete"
	Synced EventType = "synced"
)

// Event is one change. The record of a Delete has kind and metadata at least.
type Event struct {
	Type   EventType
	Record manifest.Record
}

// Blobs stores bundles. *blob.Store is one.
type Blobs interface {
	// Put checks the digest of a content-addressed key; when r fails nothing is stored.
	Put(ctx context.Context, key string, r io.Reader) error
	// Intact reports whether the blob is there, whole.
	Intact(ctx context.Context, key string) (bool, error)
	// Get opens a blob; errs.ErrNotFound when there is none.
	Get(ctx context.Context, key string) (io.ReadCloser, error)
}

// Secrets keeps what people set with `burrow secret`. Nothing here gives a value: those are
// for the activities that use them.
type Secrets interface {
	// Set refuses bad names, and values that are empty or too large, as errs.ErrInvalid.
	Set(ctx context.Context, name string, value []byte, by string) (created bool, err error)
	List(ctx context.Context) ([]manifest.Secret, error)
	// Remove gives errs.ErrNotFound for one that is not there.
	Remove(ctx context.Context, name string) error
	// Rotate changes the master key, and says each step.
	Rotate(ctx context.Context, r keyring.Rotation, say func(keyring.Step)) error
}

// Addresses is the address pools of networks. *addresses.Allocator is one.
type Addresses interface {
	Usage(ctx context.Context, networkUID string) (addrspace.Usage, error)
	// EachAddress gives all that are used, reserved or in quarantine, in order, reading a
	// page at a time.
	EachAddress(ctx context.Context, networkUID string, each func(addrspace.Holding) error) error
	// Reserve and Unreserve give *addrspace.TakenError, *addrspace.ReservedError and
	// *addrspace.RefusedError for what the asker must mend.
	Reserve(ctx context.Context, networkUID string, r netipx.IPRange, note addrspace.Reservation) error
	Unreserve(ctx context.Context, networkUID string, r netipx.IPRange) error
}

// Dialer opens connections from inside a network's namespace on this host.
type Dialer interface {
	DialNetwork(ctx context.Context, network, address string) (net.Conn, error)
}

// Keys gives a server's management key.
type Keys interface {
	Management(ctx context.Context, serverUID string) (ssh.Signer, error)
}

// Consoles opens the serial console of a server's domain.
type Consoles interface {
	Console(ctx context.Context, serverUID string) (io.ReadWriteCloser, error)
}

// RunLogs has the logs of playbook runs.
type RunLogs interface {
	// Open gives the log of a run. Run "" is the latest; follow means that reading waits for
	// more until the run has ended or ctx ends. No run is errs.ErrNotFound.
	Open(ctx context.Context, server manifest.Record, run string, follow bool) (io.ReadCloser, error)
	// Runs gives the ids of the server's runs that have a log, latest first.
	Runs(ctx context.Context, server manifest.Record) ([]string, error)
}
