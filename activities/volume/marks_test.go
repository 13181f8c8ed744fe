package volume_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"burrow.dev/burrow/activities/volume"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/manifest"
)

func (s *site) marked(t *testing.T) []string {
	t.Helper()
	entries, err := os.ReadDir(s.marks)
	require.NoError(t, err)
	names := []string{}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

const somebodys = "somebody's data"

// foreign puts a file into the pool that burrow did not make.
func (s *site) foreign(t *testing.T, name string) (path string) {
	t.Helper()
	path = filepath.Join(s.dir, name)
	require.NoError(t, os.WriteFile(path, []byte(somebodys), 0o600))
	return path
}

func requireSomebodys(t *testing.T, path string) {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, somebodys, string(text))
}

func requireNotManaged(t *testing.T, err error, path string) {
	t.Helper()
	require.ErrorIs(t, err, errs.ErrNotManaged)
	require.Equal(t, errs.Permanent, errs.ClassOf(err))
	require.ErrorContains(t, err, path)
}

func TestAFileOfADisksVeryNameIsNamedAndLeftAlone(t *testing.T) {
	for _, disk := range []string{"boot.qcow2", "data-boot.qcow2", "data-wal.raw"} {
		for _, seen := range []bool{false, true} {
			t.Run(disk, func(t *testing.T) {
				s := newSite(t, 0)
				in := s.input()
				path := s.foreign(t, "db-"+in.Server.UID[:8]+"-"+disk)
				if seen {
					require.NoError(t, s.conn.RefreshPool(t.Context(), s.pool))
				}
				for range 2 {
					_, err := s.Build(t.Context(), in)
					requireNotManaged(t, err, path)
				}
				_, err := s.Remove(t.Context(), volume.RemoveIn{Server: in.Server, Storage: in.Storage})
				require.NoError(t, err)
				require.Equal(t, []string{filepath.Base(path)}, s.files(t), "the undo leaves it, and nothing of ours")
				requireSomebodys(t, path)
				require.Empty(t, s.marked(t))
				left, err := s.List(t.Context())
				require.NoError(t, err)
				require.Empty(t, left, "no sweep takes it for burrow's")

				require.NoError(t, os.Remove(path))
				_, err = s.Build(t.Context(), in)
				if seen { // libvirt still believes in it, and looks again
					require.Equal(t, errs.Transient, errs.ClassOf(err))
					_, err = s.Build(t.Context(), in)
				}
				require.NoError(t, err, "moved away as the error says, it is no longer in the way")
			})
		}
	}
}

func TestAFileOfAVolumesVeryNameIsNamedAndLeftAlone(t *testing.T) {
	s := newSite(t, 0)
	in := volume.CreateIn{Name: "data-1", UID: uuid.NewString(), Spec: manifest.VolumeSpec{Type: "qcow2", Size: 1}}
	path := s.foreign(t, "vol-data-1-"+in.UID[:8]+".qcow2")
	_, err := s.Create(t.Context(), in)
	requireNotManaged(t, err, path)
	_, err = s.Delete(t.Context(), volume.DeleteIn{Name: in.Name, UID: in.UID})
	require.NoError(t, err)
	requireSomebodys(t, path)
}

func TestAFileOfTheNewBootDisksVeryNameIsNamedAndLeftAlone(t *testing.T) {
	s := newSite(t, 0)
	in := s.input()
	built, err := s.Build(t.Context(), in)
	require.NoError(t, err)
	path := s.foreign(t, "db-"+in.Server.UID[:8]+"-boot2.qcow2")
	_, err = s.Rebuild(t.Context(), volume.RebuildIn{Server: in.Server, Image: s.image, Boot: in.Boot, InUse: built.Disks[0].Volume})
	requireNotManaged(t, err, path)
	_, err = s.Discard(t.Context(), volume.DiscardIn{Server: in.Server, InUse: built.Disks[0].Volume})
	require.NoError(t, err)
	_, err = s.Remove(t.Context(), volume.RemoveIn{Server: in.Server, Storage: in.Storage})
	require.NoError(t, err)
	require.Equal(t, []string{filepath.Base(path)}, s.files(t))
	requireSomebodys(t, path)
}

func TestADiskThatWasMarkedAndNeverMadeIsMade(t *testing.T) {
	s := newSite(t, 0)
	in := s.input()
	out, err := s.Build(t.Context(), in)
	require.NoError(t, err)
	marked := s.marked(t)
	for _, d := range out.Disks { // a worker that was killed between the two leaves just this
		require.NoError(t, s.conn.DeleteVolume(t.Context(), s.pool, d.Volume))
	}
	again, err := s.Build(t.Context(), in)
	require.NoError(t, err)
	require.Equal(t, out, again)
	require.Equal(t, marked, s.marked(t))
}

func TestDisksOlderThanTheMarksAreBurrows(t *testing.T) {
	s := newSite(t, 0)
	in := s.input()
	out, err := s.Build(t.Context(), in)
	require.NoError(t, err)
	plain := s.foreign(t, "os-disk.qcow2")
	s.install(t)
	require.Len(t, s.marked(t), len(out.Disks))
	later := s.foreign(t, "db-"+in.Server.UID[:8]+"-boot2.qcow2")
	require.NoError(t, s.MarkStanding(t.Context()), "at the next start")
	_, err = s.Remove(t.Context(), volume.RemoveIn{Server: in.Server, Storage: in.Storage})
	require.NoError(t, err)
	require.ElementsMatch(t, []string{filepath.Base(plain), filepath.Base(later)}, s.files(t))
	require.Empty(t, s.marked(t))
}

func TestWithoutTheFolderOfMarksNothingIsMadeOrDeleted(t *testing.T) {
	s := newSite(t, 0)
	in := s.input()
	_, err := s.Build(t.Context(), in)
	require.NoError(t, err)
	before := s.files(t)
	require.NoError(t, os.RemoveAll(s.marks))
	_, err = s.Remove(t.Context(), volume.RemoveIn{Server: in.Server, Storage: in.Storage})
	require.Equal(t, errs.Operator, errs.ClassOf(err))
	require.ErrorContains(t, err, s.marks)
	_, err = s.Build(t.Context(), in)
	require.Equal(t, errs.Operator, errs.ClassOf(err))
	require.Equal(t, before, s.files(t))
}
