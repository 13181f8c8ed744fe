package network_test

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"burrow.dev/burrow/activities/network"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/internal/hostnet"
	"burrow.dev/burrow/internal/ovsx"
	"burrow.dev/burrow/manifest"
	"burrow.dev/burrow/test/lab"
)

func TestMain(m *testing.M) { lab.Main(m, lab.OVS, lab.Libvirt) }

const host = "lab"

// patience is how long a test waits for what must happen; quiet, how long it listens for
// what must not.
const (
	patience = 10 * time.Second
	quiet    = 400 * time.Millisecond
)

// memory keeps records and references as etcd would.
type memory struct {
	mu         sync.Mutex
	records    map[string]manifest.Record
	references map[string]map[string]bool
}

func newMemory() *memory {
	return &memory{records: map[string]manifest.Record{}, references: map[string]map[string]bool{}}
}

func (m *memory) put(rec manifest.Record) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.records[string(rec.Kind)+"/"+rec.Metadata.Name] = rec
}

func (m *memory) Get(_ context.Context, kind manifest.Kind, name string) (manifest.Record, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	rec, ok := m.records[string(kind)+"/"+name]
	if !ok {
		return rec, errs.ErrNotFound
	}
	return rec, nil
}

func (m *memory) List(_ context.Context, kind manifest.Kind) ([]manifest.Record, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []manifest.Record
	for _, rec := range m.records {
		if rec.Kind == kind {
			all = append(all, rec)
		}
	}
	return all, nil
}

func (m *memory) AddReference(_ context.Context, uid, host, owner string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	key := uid + "@" + host
	if m.references[key] == nil {
		m.references[key] = map[string]bool{}
	}
	m.references[key][owner] = true
	return nil
}

func (m *memory) DropReference(_ context.Context, uid, host, owner string) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	key := uid + "@" + host
	delete(m.references[key], owner)
	return len(m.references[key]), nil
}

func (m *memory) References(_ context.Context, uid, host string) ([]string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var owners []string
	for owner := range m.references[uid+"@"+host] {
		owners = append(owners, owner)
	}
	return owners, nil
}

// site is one hypervisor with its activities.
type site struct {
	*network.Activities
	records *memory
	stack   *hostnet.Stack
	sw      *ovsx.Client
	runDir  string
}

func newSite(t testing.TB) *site {
	t.Helper()
	s := &site{records: newMemory(), runDir: "/run/burrow/" + uuid.NewString()}
	s.restart(t)
	return s
}

// restore restores as a worker does that starts: Open vSwitch on a busy machine may answer
// too late, which is tried again.
func (s *site) restore(t testing.TB) {
	t.Helper()
	var err error
	require.Eventually(t, func() bool {
		err = s.Restore(t.Context())
		return errs.ClassOf(err) != errs.Transient || err == nil
	}, time.Minute, 20*time.Millisecond)
	require.NoError(t, err)
}

// restart is a new worker process on the same host.
func (s *site) restart(t testing.TB) {
	t.Helper()
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	s.stack, s.sw = hostnet.New(s.runDir, log), ovsx.New()
	s.Activities = network.New(host, s.records, s.sw, s.stack, log)
}

// network declares a network, settled as the IPAM would.
func (s *site) network(t testing.TB, name string, change func(*manifest.NetworkStatus), spec string) manifest.Record {
	t.Helper()
	status := &manifest.NetworkStatus{
		Subnets: []manifest.Subnet{{CIDR: "172.16.90.0/24", Gateway: "172.16.90.1"}}, Mode: manifest.ModeNAT,
		Bridge: manifest.BridgeName(name), Namespace: manifest.NamespaceName(name), Domain: name, MTU: 1500,
	}
	if change != nil {
		change(status)
	}
	rec := manifest.Record{Kind: manifest.KindNetwork, Spec: []byte(spec)}
	rec.Metadata.Name, rec.Metadata.UID = name, uuid.NewString()
	rec.Status = manifest.Status{Phase: manifest.PhaseReady, Network: status}
	s.records.put(rec)
	t.Cleanup(func() {
		for _, owner := range must(s.records.References(context.Background(), rec.Metadata.UID, host)) {
			must(s.records.DropReference(context.Background(), rec.Metadata.UID, host, owner))
		}
		_, err := s.Remove(context.Background(), network.RemoveIn{Name: name, UID: rec.Metadata.UID})
		require.NoError(t, err)
	})
	return rec
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
