package build

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/internal/imagestore/tool"
)

// buildDirEnv makes the test binary a builder that another test kills.
const buildDirEnv = "BURROW_TEST_BUILD_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(buildDirEnv); dir != "" {
		o := Options{Dir: dir, Log: slog.New(slog.DiscardHandler), Stage: func(s string) { os.Stdout.WriteString(s + "\n") }}
		_, err := Build(context.Background(), o, "debian12")
		os.Stdout.WriteString("ended: " + errs.Reason("%v", err).Error() + "\n")
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func TestABuildThatIsKilledLeavesNothingButWhatTheNextOneRemoves(t *testing.T) {
	if testing.Short() || os.Geteuid() != 0 {
		t.Skip("unpacks a Debian: needs root, a mirror, and half a minute")
	}
	dir := t.TempDir()
	child := exec.CommandContext(t.Context(), "/proc/self/exe")
	child.Env = append(os.Environ(), buildDirEnv+"="+dir)
	out, err := child.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, child.Start())
	waitFor(t, out, "installing remaining packages")
	require.NoError(t, child.Process.Kill())
	require.Error(t, child.Wait())

	require.Eventually(t, func() bool { return len(processesIn(t, dir)) == 0 }, 10*time.Second, 50*time.Millisecond, "its processes die with it")
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	require.NoError(t, err)
	require.NotContains(t, string(mounts), dir)
	left, err := filepath.Glob(filepath.Join(dir, workPrefix+"*"))
	require.NoError(t, err)
	require.Len(t, left, 1)

	ctx, cancel := context.WithCancel(t.Context())
	_, err = Build(ctx, Options{Dir: dir, Log: slog.New(slog.DiscardHandler), Stage: func(string) { cancel() }}, "debian12")
	require.ErrorIs(t, err, context.Canceled)
	left, err = filepath.Glob(filepath.Join(dir, workPrefix+"*"))
	require.NoError(t, err)
	require.Empty(t, left)
	images, err := filepath.Glob(filepath.Join(dir, "*.qcow2"))
	require.NoError(t, err)
	require.Empty(t, images)
}

// waitFor reads what a builder says until it says text.
func waitFor(t *testing.T, out interface{ Read([]byte) (int, error) }, text string) {
	t.Helper()
	var all bytes.Buffer
	b := make([]byte, 512)
	for !strings.Contains(all.String(), text) {
		n, err := out.Read(b)
		all.Write(b[:n])
		require.NoError(t, err, all.String())
	}
}

// processesIn lists processes whose command line names a folder.
func processesIn(t *testing.T, dir string) []string {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	require.NoError(t, err)
	var found []string
	for _, f := range files {
		if b, err := os.ReadFile(f); err == nil && bytes.Contains(b, []byte(dir)) {
			found = append(found, string(b))
		}
	}
	return found
}

func TestMirrorsComeFromTheHostWhenItIsDebian(t *testing.T) {
	trixie, err := Find("debian13")
	require.NoError(t, err)
	defaults := Mirrors{Suite: "trixie", Archive: []string{defaultArchive}, Security: []string{defaultSecurity}, Keyring: debianKeyring}
	site := defaults
	site.Archive, site.Security = []string{"http://mirror.site/debian"}, []string{"http://mirror.site/security"}
	const debian, ubuntu = "ID=debian\nVERSION_CODENAME=\"bookworm\"\n", "ID=ubuntu\nVERSION_CODENAME=noble\n"
	for name, c := range map[string]struct {
		release string
		files   map[string]string
		want    Mirrors
	}{
		"one line": {debian, map[string]string{"sources.list": `
# deb http://commented.out/debian bookworm main
deb-src http://mirror.site/debian bookworm main
deb [arch=amd64 signed-by=/x.gpg] http://mirror.site/debian/ bookworm main contrib # ours
deb http://mirror.site/debian bookworm-updates main
deb http://mirror.site/security bookworm-security main
deb http://ppa.site/other bookworm thing
deb cdrom:[Debian]/ bookworm main`}, site},
		"deb822": {debian, map[string]string{"sources.list.d/debian.sources": `Types: deb deb-src
URIs: http://mirror.site/debian
Suites: bookworm
 bookworm-updates
Components: main
Signed-By: /k.gpg

# comment
Enabled: no
Types: deb
URIs: http://off.site/debian
Suites: bookworm
Components: main

Types: deb
URIs: http://mirror.site/security/
Suites: bookworm-security
Components: main non-free`}, site},
		"other distribution": {ubuntu, map[string]string{"sources.list": "deb http://archive.ubuntu.com/ubuntu noble main"}, defaults},
		"nothing useful":     {debian, map[string]string{"sources.list": "deb\ndeb [\ndeb x", "sources.list.d/x.sources": "URIs\n:\n "}, defaults},
		"no files":           {debian, nil, defaults},
	} {
		t.Run(name, func(t *testing.T) {
			etc := t.TempDir()
			require.NoError(t, os.MkdirAll(filepath.Join(etc, "apt/sources.list.d"), 0o700))
			require.NoError(t, os.WriteFile(filepath.Join(etc, "os-release"), []byte(c.release), 0o600))
			for f, text := range c.files {
				require.NoError(t, os.WriteFile(filepath.Join(etc, "apt", f), []byte(text), 0o600))
			}
			require.Equal(t, c.want, HostMirrors(trixie, etc))
		})
	}
}

func FuzzDeb822Sources(f *testing.F) {
	f.Add("Types: deb\nURIs: http://a/\nSuites: x\nComponents: main\n")
	f.Add(" continued\n:\nURIs")
	f.Fuzz(func(t *testing.T, text string) {
		for _, s := range append(deb822Sources(text), oneLineSources(text)...) {
			require.NotContains(t, s.uri+s.suite, " ")
		}
	})
}

func TestTheHashNamesWhatTheImageIsMadeFrom(t *testing.T) {
	d12, err := Find("debian12")
	require.NoError(t, err)
	d13, err := Find("debian13")
	require.NoError(t, err)
	one := hashOf(t, d12, HostMirrors(d12, t.TempDir()))
	require.Equal(t, one, hashOf(t, d12, HostMirrors(d12, t.TempDir())))
	require.NotEqual(t, one, hashOf(t, d13, HostMirrors(d13, t.TempDir())))
	require.NotEqual(t, one, hashOf(t, d12, Mirrors{Suite: "bookworm", Archive: []string{"http://other/"}}))
	require.Regexp(t, "^[0-9a-f]{16}$", one)
}

func hashOf(t *testing.T, d Distro, m Mirrors) string {
	t.Helper()
	h, err := Hash(d, m)
	require.NoError(t, err)
	return h
}

func TestAnUnknownDistributionIsPermanentAndNamesTheOthers(t *testing.T) {
	_, err := Build(t.Context(), Options{Dir: t.TempDir()}, "slackware")
	require.Equal(t, errs.Permanent, errs.ClassOf(err))
	require.ErrorContains(t, err, "debian12, debian13")
}

func TestAMissingToolNamesItsPackage(t *testing.T) {
	err := checkTools("image/debian12", func(name string) (string, error) {
		if name == "sfdisk" {
			return "", exec.ErrNotFound
		}
		return "/" + name, nil
	})
	require.Equal(t, errs.Operator, errs.ClassOf(err))
	require.ErrorContains(t, err, "apt-get install fdisk")
	require.NoError(t, checkTools("image/debian12", func(name string) (string, error) { return name, nil }))
}

func TestAFailedBuildSaysWhatToDo(t *testing.T) {
	b := builder{Options: Options{Dir: "/cache"}, object: "image/debian12", hash: "0123", distro: Distro{Name: "debian12"}, mirrors: Mirrors{Archive: []string{"http://mirror.site/debian"}}}
	failed := func(output string) error {
		return &tool.Error{Program: "unshare", Err: errors.New("exit status 25"), Output: output}
	}
	for name, c := range map[string]struct {
		err   error
		class errs.Class
		says  string
	}{
		"full disk":     {failed("dpkg: cannot write: No space left on device"), errs.Operator, "make room below /cache"},
		"no mirror":     {failed("E: Failed to fetch http://mirror.site/debian  Could not connect"), errs.Transient, "http://mirror.site/debian"},
		"unknown key":   {failed("the public key is not available: NO_PUBKEY 123"), errs.Operator, "debian-archive-keyring"},
		"wrong clock":   {failed("E: Release file is not valid yet"), errs.Operator, "clock"},
		"anything else": {failed("E: boom"), errs.Operator, "the log is /cache/debian12-0123.log"},
	} {
		t.Run(name, func(t *testing.T) {
			err := b.translate(t.Context(), c.err)
			require.Equal(t, c.class, errs.ClassOf(err))
			require.ErrorContains(t, err, c.says)
			require.ErrorContains(t, err, "image/debian12: build")
		})
	}
}

func TestTheBootLoaderFindsItsOtherStages(t *testing.T) {
	grub := t.TempDir()
	core := make([]byte, 100*sectorSize+9)
	binary.LittleEndian.PutUint16(core[firstBlockCountAt:], 100)
	writeGrub := func(boot, core []byte) {
		require.NoError(t, os.WriteFile(filepath.Join(grub, "boot.img"), boot, 0o600))
		require.NoError(t, os.WriteFile(filepath.Join(grub, "core.img"), core, 0o600))
	}
	disk, err := os.Create(filepath.Join(t.TempDir(), "disk"))
	require.NoError(t, err)
	defer disk.Close()
	_, err = disk.WriteAt([]byte("table"), bootCodeSize)
	require.NoError(t, err)

	writeGrub(bytes.Repeat([]byte{0xcc}, sectorSize), core)
	require.NoError(t, writeBootLoader(disk, grub, biosStart, biosRoom))
	first := make([]byte, sectorSize)
	_, err = disk.ReadAt(first, 0)
	require.NoError(t, err)
	require.EqualValues(t, biosStart, binary.LittleEndian.Uint64(first[kernelSectorAt:]))
	require.Equal(t, "table", string(first[bootCodeSize:bootCodeSize+5]), "the partition table stays")
	written := make([]byte, len(core))
	_, err = disk.ReadAt(written, biosStart*sectorSize)
	require.NoError(t, err)
	require.EqualValues(t, biosStart+1, binary.LittleEndian.Uint64(written[firstBlockListAt:]))

	require.ErrorIs(t, writeBootLoader(disk, grub, biosStart, 50), errs.ErrInvalid, "too large for the partition")
	writeGrub(make([]byte, 100), core)
	require.ErrorIs(t, writeBootLoader(disk, grub, biosStart, biosRoom), errs.ErrInvalid)
	writeGrub(make([]byte, sectorSize), make([]byte, 5*sectorSize))
	require.ErrorIs(t, writeBootLoader(disk, grub, biosStart, biosRoom), errs.ErrInvalid, "a core for something else than a disk")
}

func TestStagesAreWhatMmdebstrapSays(t *testing.T) {
	var said []string
	var log bytes.Buffer
	s := &stages{log: &log, say: func(stage string) { said = append(said, stage) }}
	for _, piece := range []string{"I: running apt-get ", "update...\nI: success\n", "E: no\nI: extracting archives...\n"} {
		_, err := s.Write([]byte(piece))
		require.NoError(t, err)
	}
	require.Equal(t, []string{"running apt-get update", "extracting archives"}, said)
	require.Contains(t, log.String(), "E: no")
}

// The first boot and those after update-grub start the same kernel in the same way.
func TestBothBootConfigurationsGiveTheKernelTheSameArguments(t *testing.T) {
	first, err := os.ReadFile("debian/customize.sh")
	require.NoError(t, err)
	later, err := os.ReadFile("debian/overlay/etc/default/grub.d/50-burrow.cfg")
	require.NoError(t, err)
	args := regexp.MustCompile(`GRUB_CMDLINE_LINUX="(.+)"`).FindSubmatch(later)
	require.NotNil(t, args)
	require.Contains(t, string(first), " ro "+string(args[1])+" quiet\n")
}
