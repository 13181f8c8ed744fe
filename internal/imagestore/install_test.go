package imagestore

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"burrow.dev/burrow/internal/errs"
)

const diskSize = 2 << 20

func writeTemp(t *testing.T, b []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(path, b, 0o600))
	return path
}

func compressed(t *testing.T, how string, b []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	switch how {
	case "gz":
		z := gzip.NewWriter(&out)
		_, err := z.Write(b)
		require.NoError(t, err)
		require.NoError(t, z.Close())
	case "zst":
		z, err := zstd.NewWriter(&out)
		require.NoError(t, err)
		_, err = z.Write(b)
		require.NoError(t, err)
		require.NoError(t, z.Close())
	default:
		cmd := exec.CommandContext(t.Context(), map[string]string{"xz": "xz", "bz2": "bzip2"}[how], "-c")
		cmd.Stdin, cmd.Stdout = bytes.NewReader(b), &out
		require.NoError(t, cmd.Run())
	}
	return out.Bytes()
}

func TestEveryFormOfAnImageBecomesTheSameKindOfVolume(t *testing.T) {
	qcow2, raw := someQcow2(t, 1, diskSize), someDisk(1, diskSize)
	for name, file := range map[string][]byte{
		"qcow2": qcow2, "raw": raw,
		"qcow2.gz": compressed(t, "gz", qcow2), "qcow2.zst": compressed(t, "zst", qcow2),
		"raw.xz": compressed(t, "xz", raw), "raw.bz2": compressed(t, "bz2", raw), "raw.gz": compressed(t, "gz", raw),
	} {
		t.Run(name, func(t *testing.T) {
			s, pool := testStore(t), t.TempDir()
			src := writeTemp(t, file)
			img, err := s.Install(t.Context(), "image test", From{Path: src, Checksum: sum(file)}, pool, quiet)
			require.NoError(t, err)
			require.Equal(t, []string{img.Volume}, volumes(t, pool), "the volume and nothing else")
			require.Regexp(t, `^img-[0-9a-f]{16}\.qcow2$`, img.Volume)
			require.EqualValues(t, diskSize, img.VirtualBytes)
			require.Equal(t, 1, img.VirtualGiB())

			stored, err := os.ReadFile(img.Path)
			require.NoError(t, err)
			require.Equal(t, sum(stored), img.SHA256)
			qemu(t, "convert", "-f", "qcow2", "-O", "raw", img.Path, src+".back")
			back, err := os.ReadFile(src + ".back")
			require.NoError(t, err)
			require.Equal(t, raw, back)
			require.FileExists(t, src, "a file that is not ours stays")
		})
	}
}

func TestWhatIsNoImageOfItsOwnIsRefused(t *testing.T) {
	dir := t.TempDir()
	base, over, external, encrypted := filepath.Join(dir, "base"), filepath.Join(dir, "over"), filepath.Join(dir, "external"), filepath.Join(dir, "encrypted")
	require.NoError(t, os.WriteFile(base, someQcow2(t, 2, diskSize), 0o600))
	qemu(t, "create", "-q", "-f", "qcow2", "-b", base, "-F", "qcow2", over)
	qemu(t, "create", "-q", "-f", "qcow2", "-o", "data_file="+external+".data", external, "1G")
	qemu(t, "create", "-q", "-f", "qcow2", "--object", "secret,id=s,data=x", "-o", "encrypt.format=luks,encrypt.key-secret=s,encrypt.iter-time=10", encrypted, "1M")
	read := func(path string) []byte {
		b, err := os.ReadFile(path)
		require.NoError(t, err)
		return b
	}
	whole := someQcow2(t, 3, diskSize)
	patched := func(at int, value uint64) []byte {
		b := bytes.Clone(whole)
		binary.BigEndian.PutUint64(b[at:], value)
		return b
	}
	for name, c := range map[string]struct {
		file []byte
		says string
	}{
		"backing file":       {read(over), "backing file"},
		"external data file": {read(external), "another file"},
		"encrypted":          {read(encrypted), "encrypted"},
		"truncated":          {whole[:len(whole)/2], "cut short"},
		"header only":        {whole[:50], "header"},
		"absurd size":        {patched(24, 1<<62), ""},
		"tiny size":          {patched(24, 512), "size"},
		"unknown features":   {patched(72, 1<<40), "features"},
		"marked corrupt":     {patched(72, qcow2Corrupt), "corrupt"},
		"huge L1 table":      {patched(32, 0x00000000_7fffffff), ""},
		"web page":           {[]byte("<html>no such file</html>"), "neither qcow2 nor"},
		"noise":              {noise, "neither qcow2 nor"},
		"empty":              {nil, "neither qcow2 nor"},
		"damaged gzip":       {compressed(t, "gz", whole)[:2000], "damaged"},
		"damaged xz":         {compressed(t, "xz", whole)[:2000], "damaged"},
		"damaged zstd":       {compressed(t, "zst", whole)[:2000], "damaged"},
		"web page in gzip":   {compressed(t, "gz", []byte("<html></html>")), "neither qcow2 nor"},
		"vmdk":               {[]byte("KDMV\x01\x00\x00\x00" + string(make([]byte, 4088))), "neither qcow2 nor"},
	} {
		t.Run(name, func(t *testing.T) {
			s, pool := testStore(t), t.TempDir()
			_, err := s.Install(t.Context(), "image test", From{Path: writeTemp(t, c.file)}, pool, quiet)
			require.Error(t, err)
			require.Equal(t, errs.Permanent, errs.ClassOf(err), "%v", err)
			require.ErrorIs(t, err, errs.ErrInvalid)
			require.ErrorContains(t, err, c.says)
			require.Empty(t, volumes(t, pool), "nothing is left in the pool")
		})
	}
}

func TestAFileMustBeWhatTheCallerSays(t *testing.T) {
	s, pool, file := testStore(t), t.TempDir(), someQcow2(t, 4, diskSize)
	src := writeTemp(t, file)
	for name, from := range map[string]From{
		"wrong checksum":         {Path: src, Checksum: sum(nil)},
		"malformed checksum":     {Path: src, Checksum: "xyz"},
		"not the record's image": {Path: src, Want: sum(nil)},
		"missing":                {Path: src + "-not-there"},
		"folder":                 {Path: filepath.Dir(src)},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := s.Install(t.Context(), "image test", from, pool, quiet)
			require.Equal(t, errs.Permanent, errs.ClassOf(err), "%v", err)
			require.Empty(t, volumes(t, pool))
		})
	}
}

func TestTheSameImageTwiceIsOneFile(t *testing.T) {
	s, pool, src := testStore(t), t.TempDir(), writeTemp(t, someQcow2(t, 5, diskSize))
	first, err := s.Install(t.Context(), "image a", From{Path: src}, pool, quiet)
	require.NoError(t, err)
	before, err := os.Stat(first.Path)
	require.NoError(t, err)

	g, ctx := errgroup.WithContext(t.Context())
	for range 8 {
		g.Go(func() error {
			_, err := s.Install(ctx, "image b", From{Path: src}, pool, quiet)
			return err
		})
	}
	require.NoError(t, g.Wait())
	after, err := os.Stat(first.Path)
	require.NoError(t, err)
	require.True(t, os.SameFile(before, after), "disks that stand on the file keep it")
	require.Equal(t, []string{first.Volume}, volumes(t, pool))
}

func TestWhatAKilledInstallLeftIsRemoved(t *testing.T) {
	s, pool := testStore(t), t.TempDir()
	left := filepath.Join(pool, partPrefix+"123")
	require.NoError(t, os.WriteFile(left, noise, 0o600))
	_, err := s.Install(t.Context(), "image test", From{Path: writeTemp(t, someQcow2(t, 6, diskSize))}, pool, quiet)
	require.NoError(t, err)
	require.NoFileExists(t, left)
}

func TestACancelledInstallLeavesNothing(t *testing.T) {
	s, pool := testStore(t), t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	_, err := s.Install(ctx, "image test", From{Path: writeTemp(t, someDisk(7, diskSize))}, pool, func(stage string, _, _ int64) {
		if stage == "convert" {
			cancel()
		}
	})
	require.ErrorIs(t, err, context.Canceled)
	require.Empty(t, volumes(t, pool))
}

func TestAMarkedImageIsNotReadAgain(t *testing.T) {
	s, pool := testStore(t), t.TempDir()
	img, err := s.Install(t.Context(), "image test", From{Path: writeTemp(t, someQcow2(t, 8, diskSize))}, pool, quiet)
	require.NoError(t, err)
	info, err := os.Stat(img.Path)
	require.NoError(t, err)

	f, err := os.OpenFile(img.Path, os.O_RDWR, 0)
	require.NoError(t, err)
	_, err = f.WriteAt([]byte{1}, 4096) // a change that the mark cannot see
	require.NoError(t, err)
	require.NoError(t, f.Close())
	require.NoError(t, os.Chtimes(img.Path, time.Time{}, info.ModTime()))
	got, ok, err := s.Verified(t.Context(), "image test", pool, img.SHA256)
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, img, got)

	require.NoError(t, os.Chtimes(img.Path, time.Time{}, time.Now().Add(time.Hour)))
	_, _, err = s.Verified(t.Context(), "image test", pool, img.SHA256)
	require.Equal(t, errs.Operator, errs.ClassOf(err), "a file that looks changed is read: %v", err)
}

func TestACompleteVolumeWithoutMarkIsAdopted(t *testing.T) {
	s, pool := testStore(t), t.TempDir()
	img, err := s.Install(t.Context(), "image test", From{Path: writeTemp(t, someQcow2(t, 9, diskSize))}, pool, quiet)
	require.NoError(t, err)
	require.NoError(t, s.Forget(pool, img.SHA256))
	got, ok, err := s.Verified(t.Context(), "image test", pool, img.SHA256)
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, img, got)
	require.NoError(t, s.Forget(pool, img.SHA256))
	require.NoError(t, s.Forget(pool, img.SHA256), "forgetting twice is success")
}

func TestAForeignFileInTheWayIsNotTouched(t *testing.T) {
	s, pool, file := testStore(t), t.TempDir(), someQcow2(t, 10, diskSize)
	path := filepath.Join(pool, VolumeName(sum(file)))
	for name, place := range map[string]func() error{
		"file":   func() error { return os.WriteFile(path, []byte("mine"), 0o600) },
		"folder": func() error { return os.Mkdir(path, 0o700) },
		"link":   func() error { return os.Symlink("/dev/null", path) },
	} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, place())
			before, err := os.Lstat(path)
			require.NoError(t, err)
			_, err = s.Install(t.Context(), "image test", From{Path: writeTemp(t, file)}, pool, quiet)
			require.Equal(t, errs.Operator, errs.ClassOf(err))
			require.ErrorIs(t, err, errs.ErrNotManaged)
			after, err := os.Lstat(path)
			require.NoError(t, err)
			require.True(t, os.SameFile(before, after))
			require.NoError(t, os.RemoveAll(path))
		})
	}
}

func TestDependentsAreFoundByTheirBackingFile(t *testing.T) {
	s, pool := testStore(t), t.TempDir()
	img, err := s.Install(t.Context(), "image test", From{Path: writeTemp(t, someQcow2(t, 11, diskSize))}, pool, quiet)
	require.NoError(t, err)
	users, err := s.Dependents(pool, img.SHA256)
	require.NoError(t, err)
	require.Empty(t, users)
	qemu(t, "create", "-q", "-f", "qcow2", "-b", img.Path, "-F", "qcow2", filepath.Join(pool, "db-boot.qcow2"))
	qemu(t, "create", "-q", "-f", "qcow2", "-b", img.Volume, "-F", "qcow2", filepath.Join(pool, "web-boot.qcow2"))
	qemu(t, "create", "-q", "-f", "qcow2", filepath.Join(pool, "data.qcow2"), "1M")
	users, err = s.Dependents(pool, img.SHA256)
	require.NoError(t, err)
	require.Equal(t, []string{"db-boot.qcow2", "web-boot.qcow2"}, users)
}

func TestAFullDiskIsTheOperatorsAndLeavesNothing(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("mounts a small tmpfs: needs root")
	}
	for name, c := range map[string]struct {
		mib  string
		file []byte
	}{
		"known before the first byte":   {"200m", someDisk(12, 8<<20)},
		"found out while it is written": {"270m", compressed(t, "gz", bytes.Repeat(someDisk(13, 1<<20), 40))},
	} {
		t.Run(name, func(t *testing.T) {
			s, pool := testStore(t), t.TempDir()
			require.NoError(t, unix.Mount("burrow-test", pool, "tmpfs", 0, "size="+c.mib))
			t.Cleanup(func() { require.NoError(t, unix.Unmount(pool, 0)) })
			if name != "known before the first byte" {
				require.NoError(t, os.WriteFile(filepath.Join(pool, "other"), make([]byte, 13<<20), 0o600))
			}
			_, err := s.Install(t.Context(), "image test", From{Path: writeTemp(t, c.file)}, pool, quiet)
			require.Equal(t, errs.Operator, errs.ClassOf(err), "%v", err)
			require.ErrorIs(t, err, errs.ErrNoSpace)
			for _, v := range volumes(t, pool) {
				require.Equal(t, "other", v)
			}
		})
	}
}

func FuzzReadHeader(f *testing.F) {
	b := make([]byte, 112)
	binary.BigEndian.PutUint32(b, qcow2Magic)
	binary.BigEndian.PutUint32(b[4:], 3)
	f.Add(b)
	f.Add([]byte("QFI\xfb"))
	f.Fuzz(func(t *testing.T, b []byte) {
		h, ok, err := ReadHeader(bytes.NewReader(b))
		if err != nil {
			require.False(t, ok)
		}
		require.LessOrEqual(t, len(h.Backing), maxBackingName)
	})
}
