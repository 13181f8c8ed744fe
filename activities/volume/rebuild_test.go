package volume_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"burrow.dev/burrow/activities/volume"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/manifest"
)

func TestANewBootDiskIsMadeBesideTheOneInUse(t *testing.T) {
	s := newSite(t, 0)
	in := s.input()
	built, err := s.Build(t.Context(), in)
	require.NoError(t, err)
	first := built.Disks[0]
	mark := []byte("the guest wrote this")
	require.NoError(t, os.WriteFile(first.Path, mark, 0o600))

	rebuild := volume.RebuildIn{Server: in.Server, Image: s.image, Boot: in.Boot, InUse: first.Volume}
	second, err := s.Rebuild(t.Context(), rebuild)
	require.NoError(t, err)
	require.Equal(t, "db-"+in.Server.UID[:8]+"-boot2.qcow2", second.Disk.Volume)
	require.Equal(t, "vda", second.Disk.Target)
	require.NoError(t, os.WriteFile(second.Disk.Path, mark, 0o600), "as if an earlier attempt's guest had written to it")
	again, err := s.Rebuild(t.Context(), rebuild)
	require.NoError(t, err)
	require.Equal(t, second, again)
	content, err := os.ReadFile(again.Disk.Path)
	require.NoError(t, err)
	require.NotEqual(t, mark, content, "what was left there is not taken for a new disk")
	content, err = os.ReadFile(first.Path)
	require.NoError(t, err)
	require.Equal(t, mark, content, "the disk in use is not touched")

	_, err = s.Discard(t.Context(), volume.DiscardIn{Server: in.Server, InUse: second.Disk.Volume})
	require.NoError(t, err)
	require.NoFileExists(t, first.Path)
	rebuild.InUse = second.Disk.Volume
	third, err := s.Rebuild(t.Context(), rebuild)
	require.NoError(t, err)
	require.Equal(t, first.Volume, third.Disk.Volume, "the names take turns")

	_, err = s.Remove(t.Context(), volume.RemoveIn{Server: in.Server, Storage: in.Storage})
	require.NoError(t, err)
	require.Empty(t, s.files(t), "a server that is deleted in the middle of a rebuild leaves neither")
}

func TestADiskInUseThatIsNotTheServersOwnKeepsAllOfThem(t *testing.T) {
	s := newSite(t, 0)
	in := s.input()
	built, err := s.Build(t.Context(), in)
	require.NoError(t, err)
	for _, name := range []string{"", "os-disk.qcow2", filepath.Base(s.image.Path)} {
		_, err = s.Discard(t.Context(), volume.DiscardIn{Server: in.Server, InUse: name})
		require.ErrorIs(t, err, errs.ErrNotManaged)
		_, err = s.Rebuild(t.Context(), volume.RebuildIn{Server: in.Server, Image: s.image, Boot: in.Boot, InUse: name})
		require.ErrorIs(t, err, errs.ErrNotManaged)
	}
	require.FileExists(t, built.Disks[0].Path)
}

func TestABootDiskThatTheGuestRunsFromIsNeverDiscarded(t *testing.T) {
	s := newSite(t, 0)
	in := s.input()
	built, err := s.Build(t.Context(), in)
	require.NoError(t, err)
	first := built.Disks[0]
	rebuild := volume.RebuildIn{Server: in.Server, Image: s.image, Boot: in.Boot, InUse: first.Volume}
	second, err := s.Rebuild(t.Context(), rebuild)
	require.NoError(t, err)

	// As a rebuild leaves it that was lost after the new guest had started.
	id := manifest.DomainUUID(in.Server.UID)
	file := filepath.Join(t.TempDir(), "domain.xml")
	require.NoError(t, os.WriteFile(file, fmt.Appendf(nil, `<domain type="qemu"><name>db</name><uuid>%s</uuid><memory unit="MiB">64</memory>
<os><type arch="x86_64" machine="pc">hvm</type></os><devices>
<disk type="file" device="disk"><driver name="qemu" type="qcow2"/><source file="%s"/><target dev="vda" bus="virtio"/></disk>
</devices></domain>`, id, second.Disk.Path), 0o600))
	virsh := func(args ...string) {
		out, err := exec.CommandContext(t.Context(), "virsh", append([]string{"-c", "qemu:///system"}, args...)...).CombinedOutput()
		require.NoError(t, err, string(out))
	}
	virsh("create", "--paused", file)
	_, err = s.Rebuild(t.Context(), rebuild)
	require.ErrorContains(t, err, "its guest runs from "+second.Disk.Path)
	require.Equal(t, errs.Permanent, errs.ClassOf(err))
	require.FileExists(t, second.Disk.Path)

	virsh("destroy", id)
	_, err = s.Rebuild(t.Context(), rebuild)
	require.NoError(t, err, "off, it is what a rebuild left")
}
