package libvirtx_test

import (
	"context"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
	"libvirt.org/go/libvirtxml"

	"burrow.dev/burrow/internal/libvirtx"
	"burrow.dev/burrow/test/lab"
)

func TestMain(m *testing.M) { lab.Main(m, lab.Libvirt) }

// connect gives a connection that the test closes.
func connect(t *testing.T) *libvirtx.Connection {
	t.Helper()
	c := libvirtx.New("", nil)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

// pool makes a pool of the test's own.
func pool(t *testing.T, c *libvirtx.Connection) (name, dir string) {
	t.Helper()
	dir, err := os.MkdirTemp("/var/lib/libvirt", "pool") // tmpfs of the lab
	require.NoError(t, err)
	name = "p" + uuid.NewString()[:8]
	require.NoError(t, c.EnsurePool(t.Context(), name, dir))
	return name, dir
}

// guest is a domain without an operating system: its firmware waits for a disk for ever.
func guest(t *testing.T, c *libvirtx.Connection) *libvirtxml.Domain {
	t.Helper()
	id := uuid.NewString()
	def := &libvirtxml.Domain{
		Type: "qemu", Name: "guest-" + id[:8], UUID: id,
		Metadata: &libvirtxml.DomainMetadata{XML: `<b:mark xmlns:b="urn:burrow-test" uid="u1"/>`},
		Memory:   &libvirtxml.DomainMemory{Value: 64, Unit: "MiB"},
		VCPU:     &libvirtxml.DomainVCPU{Value: 1},
		OS:       &libvirtxml.DomainOS{Type: &libvirtxml.DomainOSType{Arch: "x86_64", Machine: "q35", Type: "hvm"}, BIOS: &libvirtxml.DomainBIOS{UseSerial: "yes"}},
		Devices: &libvirtxml.DomainDeviceList{
			Serials:    []libvirtxml.DomainSerial{{Source: &libvirtxml.DomainChardevSource{Pty: &libvirtxml.DomainChardevSourcePty{}}}},
			Interfaces: nil,
		},
	}
	require.NoError(t, c.DefineDomain(t.Context(), def))
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		_ = c.Destroy(ctx, id)
		_ = c.Undefine(ctx, id)
	})
	return def
}

// libvirtd gives the process id of the lab's libvirtd.
func libvirtd(t *testing.T) int {
	t.Helper()
	text, err := os.ReadFile("/run/libvirtd.pid")
	require.NoError(t, err)
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	require.NoError(t, err)
	return pid
}

// restartLibvirtd kills the daemon without a warning and starts a new one.
func restartLibvirtd(t *testing.T) {
	t.Helper()
	pid := libvirtd(t)
	require.NoError(t, unix.Kill(pid, unix.SIGKILL))
	require.Eventually(t, func() bool { return unix.Kill(pid, 0) != nil }, 10*time.Second, 10*time.Millisecond)
	out, err := exec.CommandContext(t.Context(), "libvirtd", "-d").CombinedOutput()
	require.NoError(t, err, string(out))
}

// await reads events until one of the type about the domain comes ("" is any).
func await(t *testing.T, events <-chan libvirtx.DomainEvent, kind libvirtx.EventType, id string) libvirtx.DomainEvent {
	t.Helper()
	deadline := time.After(30 * time.Second)
	for {
		select {
		case e := <-events:
			if e.Type == kind && (id == "" || e.UUID == id) {
				return e
			}
		case <-deadline:
			require.FailNow(t, "event did not come", "%s of %s", kind, id)
		}
	}
}
