package domain_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"burrow.dev/burrow/activities/domain"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/manifest"
)

var macs = regexp.MustCompile(`([0-9a-f]{2}:){5}[0-9a-f]{2}`)

// port is one more NIC of a server.
func (s *site) port(in domain.StartIn, name string) manifest.Port {
	return manifest.Port{
		Name: name, Index: 1, Network: "n", MAC: manifest.MAC(in.Server.UID, name), Device: manifest.DeviceName(in.Server.UID, name),
		Bridge: s.bridge, MTU: 1400, VLANs: []int{31},
	}
}

// nics gives the MACs of a domain's NICs: of the one that runs, or as it is defined.
func (s *site) nics(t *testing.T, in domain.StartIn, flags ...string) []string {
	t.Helper()
	args := append([]string{"-c", "qemu:///system", "domiflist", manifest.DomainUUID(in.Server.UID)}, flags...)
	return macs.FindAllString(run(t, "virsh", args...), -1)
}

func (s *site) ports(t *testing.T) string {
	t.Helper()
	return run(t, "ovs-vsctl", "list-ports", s.bridge)
}

func TestANICIsPluggedIntoARunningGuestOnce(t *testing.T) {
	s := newSite(t)
	in, _ := s.started(t)
	more := s.port(in, "n-1")
	for range 2 { // the second as after a worker that died before it could report the first
		out, err := s.PlugNICs(t.Context(), domain.PlugNICsIn{Server: in.Server, Ports: []manifest.Port{more}})
		require.NoError(t, err)
		require.False(t, out.Off)
	}
	require.Equal(t, []string{in.Ports[0].MAC, more.MAC}, s.nics(t, in))
	require.Contains(t, s.ports(t), more.Device)
	require.Equal(t, "31", run(t, "ovs-vsctl", "get", "port", more.Device, "tag"), "its VLAN is there with the port")
	number := run(t, "ovs-vsctl", "get", "interface", more.Device, "ofport")
	require.Contains(t, run(t, "ovs-appctl", "ofproto/trace", s.bridge, "in_port="+number), "Datapath actions: drop", "nothing passes before it is wired")

	other := more
	other.Bridge = "br-other"
	run(t, "ovs-vsctl", "add-br", other.Bridge, "--", "set", "bridge", other.Bridge, "datapath_type=netdev")
	t.Cleanup(func() { run(t, "ovs-vsctl", "del-br", other.Bridge) })
	_, err := s.PlugNICs(t.Context(), domain.PlugNICsIn{Server: in.Server, Ports: []manifest.Port{other}})
	require.ErrorIs(t, err, errs.ErrConflict)
	require.Equal(t, errs.Operator, errs.ClassOf(err))
	require.ErrorContains(t, err, "apply again with --restart")
}

func TestTheDefinitionBecomesThatOfTheNextStart(t *testing.T) {
	s := newSite(t)
	in, id := s.started(t)
	next := in
	next.Memory, next.Ports = 96, append(slices.Clone(in.Ports), s.port(in, "n-1"))
	for range 2 {
		_, err := s.Redefine(t.Context(), next)
		require.NoError(t, err)
	}
	require.Equal(t, []string{in.Ports[0].MAC}, s.nics(t, in), "the guest stays as it is")
	require.Equal(t, []string{in.Ports[0].MAC, next.Ports[1].MAC}, s.nics(t, in, "--inactive"))
	run(t, "virsh", "-c", "qemu:///system", "destroy", id)
	run(t, "virsh", "-c", "qemu:///system", "start", "--paused", id)
	require.Len(t, s.nics(t, in), 2, "also when somebody starts it by hand")

	_, err := s.Redefine(t.Context(), s.input(t))
	require.NoError(t, err, "no domain is success")
}

func TestAGuestThatDoesNotAnswerKeepsANICAndItIsNamed(t *testing.T) {
	s := newSite(t)
	in, _ := s.started(t) // its CPUs are paused: it cannot answer
	out, err := s.UnplugNICs(t.Context(), domain.PlugNICsIn{Server: in.Server, Ports: in.Ports})
	require.NoError(t, err)
	require.Equal(t, []string{"n-0"}, out.Left)
	require.Equal(t, []string{in.Ports[0].MAC}, s.nics(t, in))

	_, err = s.Shutdown(t.Context(), domain.ShutdownIn{Server: in.Server})
	require.NoError(t, err)
	out, err = s.UnplugNICs(t.Context(), domain.PlugNICsIn{Server: in.Server, Ports: in.Ports})
	require.NoError(t, err)
	require.Empty(t, out.Left, "a guest that is off has none")
	plugged, err := s.PlugNICs(t.Context(), domain.PlugNICsIn{Server: in.Server, Ports: in.Ports})
	require.NoError(t, err)
	require.True(t, plugged.Off)
}

func TestANICThatIsNotThereIsUnplugged(t *testing.T) {
	s := newSite(t)
	in, _ := s.started(t)
	out, err := s.UnplugNICs(t.Context(), domain.PlugNICsIn{Server: in.Server, Ports: []manifest.Port{s.port(in, "n-1")}})
	require.NoError(t, err)
	require.Empty(t, out.Left)
	require.Len(t, s.nics(t, in), 1)
}

func TestAnotherSeedIsInTheDriveOfTheRunningGuest(t *testing.T) {
	s := newSite(t)
	in, id := s.started(t)
	seed := filepath.Join(s.dir, in.Server.UID+"-2.iso")
	require.NoError(t, os.WriteFile(seed, make([]byte, 4096), 0o600))
	for range 2 {
		_, err := s.InsertSeed(t.Context(), domain.InsertSeedIn{Server: in.Server, Seed: seed})
		require.NoError(t, err)
	}
	require.Equal(t, seed, s.targets(t, id)["sda"])
	_, err := s.InsertSeed(t.Context(), domain.InsertSeedIn{Server: in.Server, Seed: seed + ".none"})
	require.ErrorIs(t, err, errs.ErrNotFound)
	require.Equal(t, seed, s.targets(t, id)["sda"])
}

func TestProcessorsArePluggedInAsFarAsTheGuestHasSockets(t *testing.T) {
	s := newSite(t)
	in, _ := s.started(t)
	fit := func(cpu, memory int) domain.FitOut {
		t.Helper()
		out, err := s.Fit(t.Context(), domain.FitIn{Server: in.Server, CPU: cpu, Memory: memory})
		require.NoError(t, err)
		return out
	}
	require.Equal(t, domain.FitOut{Running: true, CPU: 1, Memory: 64}, fit(1, 64))
	for range 2 {
		require.Equal(t, domain.FitOut{Running: true, CPU: 3, Memory: 64}, fit(3, 96), "memory comes with a restart")
	}
	require.Equal(t, domain.FitOut{Running: true, CPU: 3, Memory: 64}, fit(9, 64), "more than it has sockets for")
	_, err := s.Shutdown(t.Context(), domain.ShutdownIn{Server: in.Server})
	require.NoError(t, err)
	require.Equal(t, domain.FitOut{CPU: 9, Memory: 128}, fit(9, 128), "its next start brings it")
}
