package domain_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"burrow.dev/burrow/activities"
	"burrow.dev/burrow/activities/domain"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/internal/libvirtx"
	"burrow.dev/burrow/internal/ovsx"
	"burrow.dev/burrow/manifest"
	"burrow.dev/burrow/test/lab"
)

func TestMain(m *testing.M) { lab.Main(m, lab.OVS, lab.Libvirt) }

// site is a folder with disks, a bridge, and the activities.
type site struct {
	*domain.Activities
	conn   *libvirtx.Connection
	dir    string
	bridge string
}

func newSite(t *testing.T) *site {
	t.Helper()
	dir, err := os.MkdirTemp("/var/lib/libvirt", "site")
	require.NoError(t, err)
	require.NoError(t, os.Chmod(dir, 0o711))
	bridge := "br" + uuid.NewString()[:8]
	run(t, "ovs-vsctl", "add-br", bridge, "--", "set", "bridge", bridge, "datapath_type=netdev", "fail_mode=secure")
	t.Cleanup(func() { run(t, "ovs-vsctl", "--if-exists", "del-br", bridge) })
	conn := libvirtx.New("", nil)
	t.Cleanup(func() { require.NoError(t, conn.Close()) })
	return &site{domain.New(domain.Config{
		Libvirt: conn, Switch: ovsx.New(), Accelerator: "tcg", ConsoleDir: filepath.Join(dir, "consoles"),
	}), conn, dir, bridge}
}

func run(t *testing.T, name string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, name, args...).CombinedOutput()
	require.NoError(t, err, "%s %v: %s", name, args, out)
	return strings.TrimSpace(string(out))
}

// input is a server with an empty boot disk; it is removed when the test ends.
func (s *site) input(t *testing.T) domain.StartIn {
	t.Helper()
	uid := uuid.NewString()
	in := domain.StartIn{
		Server: activities.Server{Name: "s" + uid[:8], UID: uid}, CPU: 1, Memory: 64, Seed: filepath.Join(s.dir, uid+".iso"),
		Disks: []manifest.Disk{{Name: "boot", Target: "vda", Path: filepath.Join(s.dir, uid+".qcow2"), Format: "qcow2", Serial: "boot"}},
		Ports: []manifest.Port{{Name: "n-0", Network: "n", MAC: manifest.MAC(uid, "n-0"), Device: manifest.DeviceName(uid, "n-0"), Bridge: s.bridge, MTU: 1400, VLANs: []int{30}}},
	}
	run(t, "qemu-img", "create", "-q", "-f", "qcow2", in.Disks[0].Path, "1G")
	require.NoError(t, os.WriteFile(in.Seed, make([]byte, 2048), 0o600))
	t.Cleanup(func() {
		_, err := s.Remove(context.Background(), domain.RemoveIn{Server: in.Server})
		require.NoError(t, err)
	})
	return in
}

func (s *site) stateOf(t *testing.T, in domain.StartIn) string {
	t.Helper()
	state, _, err := s.State(t.Context(), in.Server.UID)
	require.NoError(t, err)
	return state
}

func TestAServerStartsPausedRunsAndIsRemovedWithoutATrace(t *testing.T) {
	s := newSite(t)
	in := s.input(t)
	out, err := s.Start(t.Context(), in)
	require.NoError(t, err)
	require.Equal(t, domain.StartOut{UUID: manifest.DomainUUID(in.Server.UID), State: "paused"}, out)
	port := in.Ports[0].Device
	require.Equal(t, s.bridge, run(t, "ovs-vsctl", "port-to-br", port))
	require.Equal(t, "30", run(t, "ovs-vsctl", "get", "port", port, "tag"))
	require.Contains(t, run(t, "ovs-vsctl", "get", "interface", port, "external_ids"), domain.InterfaceID(in.Server.UID, "n-0"))

	again, err := s.Start(t.Context(), in)
	require.NoError(t, err, "a second start adopts the first")
	require.Equal(t, out, again)
	for range 2 {
		_, err = s.Resume(t.Context(), domain.ResumeIn{Server: in.Server})
		require.NoError(t, err)
		require.Equal(t, "running", s.stateOf(t, in))
	}
	again, err = s.Start(t.Context(), in)
	require.NoError(t, err)
	require.Equal(t, "running", again.State)

	log := domain.ConsoleLog(filepath.Join(s.dir, "consoles"), in.Server.UID)
	require.Eventually(t, func() bool {
		info, err := os.Stat(log)
		return err == nil && info.Size() > 0
	}, 30*time.Second, 50*time.Millisecond, "the console is copied into its log")

	for range 2 {
		_, err = s.Remove(t.Context(), domain.RemoveIn{Server: in.Server})
		require.NoError(t, err, "removing nothing is success")
	}
	_, _, err = s.State(t.Context(), in.Server.UID)
	require.ErrorIs(t, err, errs.ErrNotFound)
	require.NoFileExists(t, log)
	require.FileExists(t, in.Disks[0].Path, "disks are not the domain's")
	require.NotContains(t, run(t, "ovs-vsctl", "list-ports", s.bridge), port)
}

func TestAStoppedServerIsDefinedAfreshAndRemovedAsWell(t *testing.T) {
	s := newSite(t)
	in := s.input(t)
	_, err := s.Start(t.Context(), in)
	require.NoError(t, err)
	_, err = s.Shutdown(t.Context(), domain.ShutdownIn{Server: in.Server, GraceSeconds: 1})
	require.NoError(t, err)
	require.Equal(t, "shutoff", s.stateOf(t, in))
	_, err = s.Shutdown(t.Context(), domain.ShutdownIn{Server: in.Server, GraceSeconds: 1})
	require.NoError(t, err, "off is success")
	resumed, err := s.Resume(t.Context(), domain.ResumeIn{Server: in.Server})
	require.NoError(t, err)
	require.True(t, resumed.Off)

	in.Memory = 96
	_, err = s.Start(t.Context(), in)
	require.NoError(t, err)
	def, err := s.conn.DomainXML(t.Context(), manifest.DomainUUID(in.Server.UID))
	require.NoError(t, err)
	require.EqualValues(t, 96*1024, def.Memory.Value, "the new size is in force")
	_, err = s.Shutdown(t.Context(), domain.ShutdownIn{Server: in.Server})
	require.NoError(t, err)
	_, err = s.Remove(t.Context(), domain.RemoveIn{Server: in.Server})
	require.NoError(t, err, "pitfall 18: destroy has nothing to do, undefine has")
}

func TestAGuestThatDoesNotHearItsButtonIsForcedOff(t *testing.T) {
	s := newSite(t)
	in := s.input(t)
	_, err := s.Start(t.Context(), in)
	require.NoError(t, err)
	_, err = s.Resume(t.Context(), domain.ResumeIn{Server: in.Server})
	require.NoError(t, err)
	_, err = s.Shutdown(t.Context(), domain.ShutdownIn{Server: in.Server, GraceSeconds: 1})
	require.NoError(t, err)
	require.Equal(t, "shutoff", s.stateOf(t, in))
}

func TestAServerSurvivesTheDeathOfLibvirtdInTheMiddle(t *testing.T) {
	s := newSite(t)
	in := s.input(t)
	_, err := s.Start(t.Context(), in)
	require.NoError(t, err)

	killLibvirtd(t)
	_, err = s.Resume(t.Context(), domain.ResumeIn{Server: in.Server})
	require.Error(t, err)
	require.Equal(t, errs.Transient, errs.ClassOf(err), "pitfall 17: no answer is no proof")
	require.NotErrorIs(t, err, errs.ErrNotFound)
	run(t, "libvirtd", "-d")

	require.Eventually(t, func() bool {
		_, err := s.Resume(t.Context(), domain.ResumeIn{Server: in.Server})
		return err == nil
	}, 30*time.Second, 100*time.Millisecond)
	require.Equal(t, "running", s.stateOf(t, in))
}

func TestTheConsoleIsOpenedByUID(t *testing.T) {
	s := newSite(t)
	in := s.input(t)
	_, err := s.Start(t.Context(), in)
	require.NoError(t, err)
	con, err := s.Console(t.Context(), in.Server.UID)
	require.NoError(t, err)
	_, err = s.Resume(t.Context(), domain.ResumeIn{Server: in.Server})
	require.NoError(t, err)
	_, err = io.ReadFull(con, make([]byte, 1))
	require.NoError(t, err)
	require.NoError(t, con.Close())
}

func TestATrunkHasItsNativeVLANFromTheFirstMoment(t *testing.T) {
	s := newSite(t)
	in := s.input(t)
	in.Server.Name += strings.Repeat("x", 63-len(in.Server.Name)) // the longest name there is
	in.Ports[0].VLANs, in.Ports[0].NativeVLAN = []int{10, 20}, 20
	_, err := s.Start(t.Context(), in)
	require.NoError(t, err)
	port := in.Ports[0].Device
	require.Equal(t, "native-untagged", run(t, "ovs-vsctl", "get", "port", port, "vlan_mode"))
	require.Equal(t, "20", run(t, "ovs-vsctl", "get", "port", port, "tag"))
	require.Equal(t, "[10, 20]", run(t, "ovs-vsctl", "get", "port", port, "trunks"))
}

func TestADiskThatAnotherServerHasOpenIsSaidToBeInUse(t *testing.T) {
	s := newSite(t)
	first, second := s.input(t), s.input(t)
	_, err := s.Start(t.Context(), first)
	require.NoError(t, err)
	second.Disks = first.Disks
	_, err = s.Start(t.Context(), second)
	require.ErrorIs(t, err, errs.ErrBusy)
	require.Equal(t, errs.Transient, errs.ClassOf(err))
	_, err = s.Remove(t.Context(), domain.RemoveIn{Server: second.Server})
	require.NoError(t, err, "pitfall 1: what a failed start leaves defined is undone")
	_, err = s.conn.DomainUUID(t.Context(), second.Server.Name)
	require.ErrorIs(t, err, errs.ErrNotFound)
	require.Equal(t, "paused", s.stateOf(t, first))
}

func TestServersStartAndStopSideBySide(t *testing.T) {
	s := newSite(t)
	var all []domain.StartIn
	for range 6 {
		all = append(all, s.input(t))
	}
	g, ctx := errgroup.WithContext(t.Context())
	for _, in := range all {
		for range 2 { // each twice at once
			g.Go(func() error {
				for {
					out, err := s.Start(ctx, in)
					if err == nil && out.State != "paused" {
						return fmt.Errorf("it is %s", out.State)
					}
					if err == nil || errs.ClassOf(err) != errs.Transient {
						return err
					}
				}
			})
		}
	}
	require.NoError(t, g.Wait())
	g, ctx = errgroup.WithContext(t.Context())
	for _, in := range all {
		g.Go(func() error { _, err := s.Remove(ctx, domain.RemoveIn{Server: in.Server}); return err })
	}
	require.NoError(t, g.Wait())
}
