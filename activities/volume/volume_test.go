package volume_test

import (
	"crypto/rand"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"burrow.dev/burrow/activities"
	"burrow.dev/burrow/activities/image"
	"burrow.dev/burrow/activities/volume"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/internal/libvirtx"
	"burrow.dev/burrow/manifest"
	"burrow.dev/burrow/test/lab"
)

func TestMain(m *testing.M) { lab.Main(m, lab.Libvirt) }

// site is a pool with an image, and the activities on it.
type site struct {
	*volume.Activities
	conn  *libvirtx.Connection
	pool  string
	dir   string
	marks string
	image image.EnsureOut
}

// newSite makes a pool on its own file system of the given size in MiB (0: the lab's).
func newSite(t *testing.T, sizeMiB int) *site {
	t.Helper()
	dir, err := os.MkdirTemp("/var/lib/libvirt", "pool")
	require.NoError(t, err)
	require.NoError(t, os.Chmod(dir, 0o711))
	if sizeMiB > 0 {
		require.NoError(t, unix.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%dm,mode=0711", sizeMiB)))
		t.Cleanup(func() { require.NoError(t, unix.Unmount(dir, unix.MNT_DETACH)) })
	}
	conn := libvirtx.New("", nil)
	t.Cleanup(func() { require.NoError(t, conn.Close()) })
	pool := "p" + uuid.NewString()[:8]
	require.NoError(t, conn.EnsurePool(t.Context(), pool, dir))
	img := image.EnsureOut{Pool: pool, Volume: "img-0123456789abcdef.qcow2", Path: filepath.Join(dir, "img-0123456789abcdef.qcow2"), Format: "qcow2", VirtualGiB: 1}
	writeImage(t, img.Path)
	s := &site{conn: conn, pool: pool, dir: dir, image: img}
	s.install(t)
	return s
}

// install begins with a host as it stands: burrow has no marks there yet.
func (s *site) install(t *testing.T) {
	t.Helper()
	s.marks = filepath.Join(t.TempDir(), "disks")
	s.Activities = volume.New(volume.Config{Libvirt: s.conn, Pool: s.pool, Marks: s.marks})
	require.NoError(t, s.MarkStanding(t.Context()))
}

// writeImage makes a qcow2 of 3 MiB, all of it data, past libvirt.
func writeImage(t *testing.T, path string) {
	t.Helper()
	raw := filepath.Join(t.TempDir(), "raw")
	data := make([]byte, 3<<20)
	_, _ = rand.Read(data)
	require.NoError(t, os.WriteFile(raw, data, 0o600))
	out, err := exec.CommandContext(t.Context(), "qemu-img", "convert", "-f", "raw", "-O", "qcow2", raw, path).CombinedOutput()
	require.NoError(t, err, string(out))
}

func (s *site) input() volume.BuildIn {
	return volume.BuildIn{
		Server: activities.Server{Name: "db", UID: uuid.NewString()}, Image: s.image,
		Boot:    manifest.BootVolume{Type: "qcow2", Size: 2},
		Storage: []manifest.Storage{{Name: "boot", Spec: &manifest.VolumeSpec{Type: "qcow2", Size: 1}}, {Name: "wal", Spec: &manifest.VolumeSpec{Type: "raw", Size: 1}}},
	}
}

// files lists the pool's folder but for the image.
func (s *site) files(t *testing.T) []string {
	t.Helper()
	names := []string{}
	entries, err := os.ReadDir(s.dir)
	require.NoError(t, err)
	for _, e := range entries {
		if e.Name() != s.image.Volume {
			names = append(names, e.Name())
		}
	}
	return names
}

func TestDisksAreBuiltInOrderAdoptedAndRemoved(t *testing.T) {
	s := newSite(t, 0)
	in := s.input()
	out, err := s.Build(t.Context(), in)
	require.NoError(t, err)
	uid8 := in.Server.UID[:8]
	require.Len(t, out.Disks, 3)
	boot := out.Disks[0]
	require.Equal(t, manifest.Disk{
		Name: "boot", Target: "vda", Pool: s.pool, Volume: "db-" + uid8 + "-boot.qcow2", Path: filepath.Join(s.dir, "db-"+uid8+"-boot.qcow2"),
		Format: "qcow2", Serial: "boot", SizeGiB: 2, Owned: true, Backing: []manifest.Backing{{Path: s.image.Path, Format: "qcow2"}},
	}, boot)
	require.Equal(t, "vdb", out.Disks[1].Target)
	require.Equal(t, "db-"+uid8+"-data-boot.qcow2", out.Disks[1].Volume, "a data disk called boot is not the boot disk")
	require.Equal(t, "vdc", out.Disks[2].Target)
	require.Equal(t, "raw", out.Disks[2].Format)
	for i, d := range out.Disks {
		v, err := s.conn.Volume(t.Context(), s.pool, d.Volume)
		require.NoError(t, err)
		require.EqualValues(t, []uint64{2 << 30, 1 << 30, 1 << 30}[i], v.Capacity.Value)
	}

	again, err := s.Build(t.Context(), in)
	require.NoError(t, err)
	require.Equal(t, out, again, "a second build adopts the first")

	for range 2 {
		_, err = s.Remove(t.Context(), volume.RemoveIn{Server: in.Server, Storage: in.Storage})
		require.NoError(t, err, "removing nothing is success")
	}
	require.Empty(t, s.files(t))
	require.FileExists(t, s.image.Path)
	require.DirExists(t, s.dir)
}

func TestARawBootDiskIsAFullCopyGrownAndWithoutBacking(t *testing.T) {
	s := newSite(t, 0)
	in := s.input()
	in.Boot.Type, in.Storage = "raw", nil
	out, err := s.Build(t.Context(), in)
	require.NoError(t, err)
	require.Empty(t, out.Disks[0].Backing)
	info, err := os.Stat(out.Disks[0].Path)
	require.NoError(t, err)
	require.EqualValues(t, 2<<30, info.Size())
	got, err := exec.CommandContext(t.Context(), "qemu-img", "compare", "-f", "raw", "-F", "qcow2", out.Disks[0].Path, s.image.Path).CombinedOutput()
	require.NoError(t, err, string(got))
}

func TestTheTorsoOfAnInterruptedCopyIsMadeAgain(t *testing.T) {
	s := newSite(t, 0)
	in := s.input()
	in.Boot.Type = "raw"
	uid8 := in.Server.UID[:8]
	// libvirtd died while it copied: a raw file of the image's size; and before qemu-img
	// had written a header.
	require.NoError(t, os.WriteFile(filepath.Join(s.dir, "db-"+uid8+"-boot.raw"), make([]byte, 3<<20), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(s.dir, "db-"+uid8+"-data-boot.qcow2"), nil, 0o600))
	require.NoError(t, s.conn.RefreshPool(t.Context(), s.pool))
	s.install(t)
	out, err := s.Build(t.Context(), in)
	require.NoError(t, err)
	got, err := exec.CommandContext(t.Context(), "qemu-img", "compare", "-f", "raw", "-F", "qcow2", out.Disks[0].Path, s.image.Path).CombinedOutput()
	require.NoError(t, err, string(got))
	v, err := s.conn.Volume(t.Context(), s.pool, out.Disks[1].Volume)
	require.NoError(t, err)
	require.Equal(t, "qcow2", v.Target.Format.Type)
}

func TestOtherServersAndForeignVolumesAreNotTouched(t *testing.T) {
	s := newSite(t, 0)
	mine, other := s.input(), s.input()
	_, err := s.Build(t.Context(), mine)
	require.NoError(t, err)
	out, err := s.Build(t.Context(), other)
	require.NoError(t, err, "a server of the same name and another uid has other volumes")
	foreign := filepath.Join(s.dir, "db-boot.qcow2")
	require.NoError(t, os.WriteFile(foreign, []byte("x"), 0o600))
	_, err = s.Remove(t.Context(), volume.RemoveIn{Server: mine.Server, Storage: mine.Storage})
	require.NoError(t, err)
	require.FileExists(t, foreign)
	for _, d := range out.Disks {
		require.FileExists(t, d.Path)
	}
}

func TestARemoveFindsAFileThatLibvirtHasNotSeen(t *testing.T) {
	s := newSite(t, 0)
	in := s.input()
	path := filepath.Join(s.dir, "db-"+in.Server.UID[:8]+"-boot.qcow2")
	require.NoError(t, os.WriteFile(path, []byte("half"), 0o600))
	s.install(t)
	_, err := s.Remove(t.Context(), volume.RemoveIn{Server: in.Server})
	require.NoError(t, err)
	require.NoFileExists(t, path)
}

func TestAFullDiskIsTheOperatorsAndLeavesNothingHalfWritten(t *testing.T) {
	s := newSite(t, 5) // the image takes 3 MiB of it
	in := s.input()
	in.Boot.Type, in.Storage = "raw", nil
	_, err := s.Build(t.Context(), in)
	require.ErrorIs(t, err, errs.ErrNoSpace)
	require.Equal(t, errs.Operator, errs.ClassOf(err))
	require.ErrorContains(t, err, "server/db")
	require.Empty(t, s.files(t))
}

func TestABootDiskSmallerThanItsImageIsRefusedBeforeAnythingIsMade(t *testing.T) {
	s := newSite(t, 0)
	in := s.input()
	in.Image.VirtualGiB = 3
	_, err := s.Build(t.Context(), in)
	require.Equal(t, errs.Permanent, errs.ClassOf(err))
	require.ErrorContains(t, err, "3 GiB")
	require.Empty(t, s.files(t))
}

func TestAVolumeResourceIsAttachedAndOutlivesTheServer(t *testing.T) {
	s := newSite(t, 0)
	uid := uuid.NewString()
	made, err := s.Create(t.Context(), volume.CreateIn{Name: "data-1", UID: uid, Spec: manifest.VolumeSpec{Type: "qcow2", Size: 1}})
	require.NoError(t, err)
	require.Equal(t, "vol-data-1-"+uid[:8]+".qcow2", made.Volume.Volume)
	require.Equal(t, "data-1", made.Volume.Serial)

	in := s.input()
	in.Storage = []manifest.Storage{{Name: "data-1"}}
	_, err = s.Build(t.Context(), in)
	require.ErrorIs(t, err, errs.ErrNotFound, "no record of it")

	rec := manifest.Record{Status: manifest.Status{Volume: &made.Volume}}
	rec.Metadata.Name = "data-1"
	in.Attached = []manifest.Record{rec}
	out, err := s.Build(t.Context(), in)
	require.NoError(t, err)
	require.False(t, out.Disks[1].Owned)
	require.Equal(t, made.Volume.Path, out.Disks[1].Path)
	require.Equal(t, "vdb", out.Disks[1].Target)

	_, err = s.Remove(t.Context(), volume.RemoveIn{Server: in.Server, Storage: in.Storage})
	require.NoError(t, err)
	require.FileExists(t, made.Volume.Path)

	for range 2 {
		_, err = s.Delete(t.Context(), volume.DeleteIn{Name: "data-1", UID: uid})
		require.NoError(t, err)
	}
	require.NoFileExists(t, made.Volume.Path)
	_, err = s.Build(t.Context(), in)
	require.ErrorIs(t, err, errs.ErrNotFound)
	require.Equal(t, errs.Permanent, errs.ClassOf(err))
	require.ErrorContains(t, err, "volume/data-1")
}

func TestAGuestCannotMakeItsRawDiskNameAHostFile(t *testing.T) {
	s := newSite(t, 0)
	uid := uuid.NewString()
	made, err := s.Create(t.Context(), volume.CreateIn{Name: "evil", UID: uid, Spec: manifest.VolumeSpec{Type: "raw", Size: 1}})
	require.NoError(t, err)
	out, err := exec.CommandContext(t.Context(), "qemu-img", "create", "-q", "-u", "-f", "qcow2", "-b", "/etc/shadow", "-F", "raw", made.Volume.Path, "1G").CombinedOutput()
	require.NoError(t, err, string(out)) // what a guest could write into its disk
	require.NoError(t, s.conn.RefreshPool(t.Context(), s.pool))
	rec := manifest.Record{Status: manifest.Status{Volume: &made.Volume}}
	rec.Metadata.Name = "evil"
	in := s.input()
	in.Storage, in.Attached = []manifest.Storage{{Name: "evil"}}, []manifest.Record{rec}
	built, err := s.Build(t.Context(), in)
	require.NoError(t, err)
	require.Equal(t, "raw", built.Disks[1].Format)
	require.Empty(t, built.Disks[1].Backing)
}

func TestTwentyServersAreBuiltAndRemovedAtOnce(t *testing.T) {
	s := newSite(t, 0)
	g, ctx := errgroup.WithContext(t.Context())
	for range 20 {
		g.Go(func() error {
			in := s.input()
			if _, err := s.Build(ctx, in); err != nil {
				return err
			}
			_, err := s.Remove(ctx, volume.RemoveIn{Server: in.Server, Storage: in.Storage})
			return err
		})
	}
	require.NoError(t, g.Wait())
	require.Empty(t, s.files(t))
}

func TestUnsupportedKindsAreRefusedByName(t *testing.T) {
	s := newSite(t, 0)
	for name, spec := range map[string]manifest.VolumeSpec{
		"lvm": {Type: "lvm", Size: 1}, "storageClass fast": {Size: 1, StorageClass: "fast"}, "kind os": {Size: 1, Kind: "os"}, "no size": {},
	} {
		_, err := s.Create(t.Context(), volume.CreateIn{Name: "v", UID: uuid.NewString(), Spec: spec})
		require.ErrorIs(t, err, errs.ErrInvalid)
		require.ErrorContains(t, err, name)
	}
	_, err := s.Delete(t.Context(), volume.DeleteIn{Name: "v", UID: "../x"})
	require.ErrorIs(t, err, errs.ErrInvalid)
}
