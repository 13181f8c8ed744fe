package domain_test

import (
	"path/filepath"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"burrow.dev/burrow/activities"
	"burrow.dev/burrow/activities/domain"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/manifest"
)

// disk makes a data disk file for a server.
func (s *site) disk(t *testing.T, target string) manifest.Disk {
	t.Helper()
	d := manifest.Disk{Name: "data-" + target, Target: target, Path: filepath.Join(s.dir, uuid.NewString()+".qcow2"), Format: "qcow2", Serial: "data-" + target}
	run(t, "qemu-img", "create", "-q", "-f", "qcow2", d.Path, "1G")
	return d
}

func (s *site) started(t *testing.T) (domain.StartIn, string) {
	t.Helper()
	in := s.input(t)
	_, err := s.Start(t.Context(), in)
	require.NoError(t, err)
	return in, manifest.DomainUUID(in.Server.UID)
}

func (s *site) targets(t *testing.T, id string) map[string]string {
	t.Helper()
	def, err := s.conn.DomainXML(t.Context(), id)
	require.NoError(t, err)
	found := map[string]string{}
	for _, d := range def.Devices.Disks {
		if d.Source != nil && d.Source.File != nil {
			found[d.Target.Dev] = d.Source.File.File
		}
	}
	return found
}

func TestDisksArePluggedIntoARunningGuestOnce(t *testing.T) {
	s := newSite(t)
	in, id := s.started(t)
	disks := []manifest.Disk{s.disk(t, "vdb"), s.disk(t, "vdc"), s.disk(t, "vdd")}
	for range 2 {
		_, err := s.Plug(t.Context(), domain.PlugIn{Server: in.Server, Disks: disks})
		require.NoError(t, err)
	}
	found := s.targets(t, id)
	for _, d := range disks {
		require.Equal(t, d.Path, found[d.Target])
	}
	other := s.disk(t, "vdb")
	_, err := s.Plug(t.Context(), domain.PlugIn{Server: in.Server, Disks: []manifest.Disk{other}})
	require.ErrorIs(t, err, errs.ErrConflict, "another disk is there")
	_, err = s.Unplug(t.Context(), domain.PlugIn{Server: in.Server, Disks: []manifest.Disk{other}})
	require.NoError(t, err)
	require.Equal(t, disks[0].Path, s.targets(t, id)["vdb"], "and it stays")
}

func TestAGuestThatIsOffHasNothingToPlug(t *testing.T) {
	s := newSite(t)
	in := s.input(t)
	plug := domain.PlugIn{Server: in.Server, Disks: []manifest.Disk{s.disk(t, "vdb")}}
	_, err := s.Plug(t.Context(), plug)
	require.NoError(t, err)
	_, err = s.Unplug(t.Context(), plug)
	require.NoError(t, err)
}

func TestADiskGrowsWhileItIsInUse(t *testing.T) {
	s := newSite(t)
	in, id := s.started(t)
	boot := in.Disks[0]
	boot.Owned = true
	for range 2 {
		_, err := s.Grow(t.Context(), domain.GrowIn{Server: in.Server, Disk: boot, GiB: 2})
		require.NoError(t, err)
	}
	size, err := s.conn.DiskSize(t.Context(), id, "vda")
	require.NoError(t, err)
	require.EqualValues(t, 2<<30, size)
	out, err := s.Grow(t.Context(), domain.GrowIn{Server: in.Server, Disk: boot, GiB: 1})
	require.NoError(t, err, "a larger one stays")
	require.Equal(t, 2, out.GiB)
	size, err = s.conn.DiskSize(t.Context(), id, "vda")
	require.NoError(t, err)
	require.EqualValues(t, 2<<30, size)
	boot.Owned = false
	_, err = s.Grow(t.Context(), domain.GrowIn{Server: in.Server, Disk: boot, GiB: 3})
	require.ErrorIs(t, err, errs.ErrNotManaged)
}

func TestAForeignDomainIsNeitherPluggedNorGrown(t *testing.T) {
	s := newSite(t)
	in, _ := s.started(t)
	def := run(t, "virsh", "-c", "qemu:///system", "metadata", manifest.DomainUUID(in.Server.UID), domain.Namespace, "--key", "burrow", "--set", `<server uid="another"/>`, "--live", "--config")
	require.NotEmpty(t, def)
	t.Cleanup(func() {
		run(t, "virsh", "-c", "qemu:///system", "metadata", manifest.DomainUUID(in.Server.UID), domain.Namespace, "--key", "burrow", "--set", `<server uid="`+in.Server.UID+`"/>`, "--live", "--config")
	})
	other := activities.Server{Name: in.Server.Name, UID: in.Server.UID}
	_, err := s.Plug(t.Context(), domain.PlugIn{Server: other, Disks: []manifest.Disk{s.disk(t, "vdb")}})
	require.ErrorIs(t, err, errs.ErrNotManaged)
	_, err = s.Grow(t.Context(), domain.GrowIn{Server: other, Disk: manifest.Disk{Name: "boot", Target: "vda", Owned: true}, GiB: 2})
	require.ErrorIs(t, err, errs.ErrNotManaged)
}
