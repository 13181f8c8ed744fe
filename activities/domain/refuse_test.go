package domain_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"libvirt.org/go/libvirtxml"

	"burrow.dev/burrow/activities"
	"burrow.dev/burrow/activities/domain"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/manifest"
)

func TestAForeignDomainOfTheNameIsNamedAndNotTouched(t *testing.T) {
	s := newSite(t)
	in := s.input(t)
	foreign := &libvirtxml.Domain{
		Type: "qemu", Name: in.Server.Name, UUID: uuid.NewString(), Memory: &libvirtxml.DomainMemory{Value: 32, Unit: "MiB"},
		OS: &libvirtxml.DomainOS{Type: &libvirtxml.DomainOSType{Arch: "x86_64", Machine: "q35", Type: "hvm"}},
	}
	require.NoError(t, s.conn.DefineDomain(t.Context(), foreign))
	t.Cleanup(func() { require.NoError(t, s.conn.Undefine(context.Background(), foreign.UUID)) })
	_, err := s.Start(t.Context(), in)
	require.ErrorIs(t, err, errs.ErrNotManaged)
	require.Equal(t, errs.Permanent, errs.ClassOf(err))
	require.ErrorContains(t, err, foreign.UUID)
	_, err = s.Remove(t.Context(), domain.RemoveIn{Server: in.Server})
	require.NoError(t, err)
	_, err = s.conn.DomainUUID(t.Context(), in.Server.Name)
	require.NoError(t, err, "still there")
}

// Such a guest is there after a restore from before it was built.
func TestAGuestThatASweepAsksAboutIsNamedByItsOwner(t *testing.T) {
	s := newSite(t)
	left, _ := s.started(t)
	in := s.input(t)
	in.Server.Name = left.Server.Name
	_, err := s.Start(t.Context(), in)
	require.ErrorIs(t, err, errs.ErrExists)
	require.Equal(t, errs.Permanent, errs.ClassOf(err))
	require.ErrorContains(t, err, "burrow sweep --remove "+left.Server.UID)
	require.NotContains(t, err.Error(), "virsh", "its disks and addresses would stay")
}

func TestADomainOfOurUUIDWithoutOurMarkIsNotTouched(t *testing.T) {
	s := newSite(t)
	in := s.input(t)
	require.NoError(t, s.conn.DefineDomain(t.Context(), &libvirtxml.Domain{
		Type: "qemu", Name: in.Server.Name, UUID: manifest.DomainUUID(in.Server.UID), Memory: &libvirtxml.DomainMemory{Value: 32, Unit: "MiB"},
		OS: &libvirtxml.DomainOS{Type: &libvirtxml.DomainOSType{Arch: "x86_64", Machine: "q35", Type: "hvm"}},
	}))
	_, err := s.Start(t.Context(), in)
	require.ErrorIs(t, err, errs.ErrNotManaged)
	_, err = s.Shutdown(t.Context(), domain.ShutdownIn{Server: in.Server})
	require.ErrorIs(t, err, errs.ErrNotManaged)
	require.ErrorContains(t, err, ": shut down: ")
	_, err = s.Remove(t.Context(), domain.RemoveIn{Server: in.Server})
	require.ErrorIs(t, err, errs.ErrNotManaged)
	require.ErrorContains(t, err, ": remove domain: ")
	require.NoError(t, s.conn.Undefine(t.Context(), manifest.DomainUUID(in.Server.UID)), "still there")
}

func TestAForeignPortOfADevicesNameIsNamedAndNotTouched(t *testing.T) {
	s := newSite(t)
	in := s.input(t)
	device := in.Ports[0].Device
	run(t, "ovs-vsctl", "add-port", s.bridge, device, "--", "set", "interface", device, "type=internal", "external_ids:owner=somebody")
	for range 2 {
		_, err := s.Start(t.Context(), in)
		require.ErrorIs(t, err, errs.ErrNotManaged)
		require.Equal(t, errs.Permanent, errs.ClassOf(err))
		require.ErrorContains(t, err, device)
	}
	_, err := s.Remove(t.Context(), domain.RemoveIn{Server: in.Server})
	require.NoError(t, err)
	require.Equal(t, "somebody", run(t, "ovs-vsctl", "get", "interface", device, "external_ids:owner"))

	run(t, "ovs-vsctl", "del-port", device)
	_, err = s.Start(t.Context(), in)
	require.NoError(t, err)
}

func TestWhatIsMissingIsNamed(t *testing.T) {
	s := newSite(t)
	in := s.input(t)
	noBridge := in
	noBridge.Ports = []manifest.Port{{Name: "n-0", Network: "lost-net", Bridge: "br-lost"}}
	_, err := s.Start(t.Context(), noBridge)
	require.ErrorIs(t, err, errs.ErrNotFound)
	require.ErrorContains(t, err, "br-lost")
	require.ErrorContains(t, err, "network/lost-net")
	require.Equal(t, errs.Transient, errs.ClassOf(err))

	noDisk := in
	noDisk.Disks = []manifest.Disk{{Name: "data-1", Path: filepath.Join(s.dir, "gone.qcow2")}}
	_, err = s.Start(t.Context(), noDisk)
	require.ErrorContains(t, err, "disk data-1")
	require.ErrorContains(t, err, "gone.qcow2")

	require.NoError(t, os.Chmod(s.dir, 0o700))
	_, err = s.Start(t.Context(), in)
	require.Equal(t, errs.Operator, errs.ClassOf(err))
	require.ErrorContains(t, err, "chmod o+x "+s.dir)
	_, _, err = s.State(t.Context(), in.Server.UID)
	require.ErrorIs(t, err, errs.ErrNotFound, "nothing was defined")
}

func TestImpossibleServersAreRefused(t *testing.T) {
	s := newSite(t)
	for name, change := range map[string]func(*domain.StartIn){
		"uid": func(in *domain.StartIn) { in.Server.UID = "" }, "CPU": func(in *domain.StartIn) { in.CPU = 0 },
		"uefi": func(in *domain.StartIn) { in.Firmware = "uefi" }, "boot disk": func(in *domain.StartIn) { in.Disks = nil },
	} {
		in := domain.StartIn{Server: activities.Server{Name: "x", UID: uuid.NewString()}, CPU: 1, Memory: 1, Disks: []manifest.Disk{{}}}
		change(&in)
		_, err := s.Start(t.Context(), in)
		require.ErrorIs(t, err, errs.ErrInvalid, name)
		require.ErrorContains(t, err, name)
	}
}
