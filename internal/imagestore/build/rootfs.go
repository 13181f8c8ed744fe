package build

import (
	"bytes"
	"context"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"burrow.dev/burrow/internal/imagestore/tool"
)

// rootfs makes the folder work/root: the release's packages with the recipe applied.
// mmdebstrap runs in a mount and a pid namespace of its own: its mounts and processes
// end with it, however it ends.
func rootfs(ctx context.Context, run tool.Runner, d Distro, m Mirrors, work string) (string, error) {
	names, err := packages()
	if err != nil {
		return "", err
	}
	recipe := filepath.Join(work, "recipe")
	if err := unpackRecipe(recipe); err != nil {
		return "", err
	}
	sources := filepath.Join(work, "sources.list")
	if err := writeFile(sources, []byte(m.sourcesList()), 0o644); err != nil {
		return "", err
	}
	tmp := filepath.Join(work, "tmp")
	if err := makeDir(tmp, 0o755); err != nil { // apt's unprivileged downloader must get in
		return "", err
	}
	root := filepath.Join(work, "root")
	args := []string{
		"--mount", "--pid", "--fork", "--kill-child=KILL", "--mount-proc",
		"mmdebstrap", "--mode=root", "--format=directory", "--variant=apt",
		"--include=" + strings.Join(names, ","),
		// Manuals and translations are left out of the image; packages that are
		// installed in the guest later bring theirs.
		"--dpkgopt=path-exclude=/usr/share/man/*",
		"--dpkgopt=path-exclude=/usr/share/locale/*",
		"--dpkgopt=path-include=/usr/share/locale/locale.alias",
		"--dpkgopt=path-exclude=/usr/share/doc/*",
		"--dpkgopt=path-include=/usr/share/doc/*/copyright",
		// Before the kernel is installed, so that its initramfs is made once and right.
		"--essential-hook=cp -a '" + filepath.Join(recipe, "overlay") + "/.' \"$1\"",
		"--customize-hook=sh '" + filepath.Join(recipe, "customize.sh") + "' \"$1\" '" + d.Suite + "'",
		d.Suite, root, sources,
	}
	if err := run(ctx, tool.Command{Name: "unshare", Args: args, Env: []string{"TMPDIR=" + tmp}}); err != nil {
		return "", err
	}
	return root, finishRootfs(root, m)
}

// finishRootfs sets what mmdebstrap itself puts there or takes away at its end.
func finishRootfs(root string, m Mirrors) error {
	for _, leftover := range []string{
		"etc/apt/sources.list", "etc/apt/sources.list.d/0000sources.list",
		"etc/apt/apt.conf.d/99mmdebstrap", "etc/dpkg/dpkg.cfg.d/99mmdebstrap",
		"etc/hostname", "etc/resolv.conf", "etc/machine-id", "var/lib/dbus/machine-id",
	} {
		if err := os.RemoveAll(filepath.Join(root, leftover)); err != nil {
			return err
		}
	}
	for path, text := range map[string]string{
		"etc/apt/sources.list.d/debian.sources": m.deb822(),
		"etc/hostname":                          "localhost\n",
		"etc/machine-id":                        "", // each clone gets its own at its first boot
		// Newer than /usr: systemd has nothing to bring up to date at the first boot.
		"etc/.updated": "", "var/.updated": "",
	} {
		if err := writeFile(filepath.Join(root, path), []byte(text), 0o644); err != nil {
			return err
		}
	}
	// Without this the empty lists of packages would look fresh to Ansible's
	// cache_valid_time for the first hour.
	if err := os.Chtimes(filepath.Join(root, "var/lib/apt/lists"), time.Time{}, time.Unix(0, 0)); err != nil {
		return err
	}
	if err := os.Symlink("../run/systemd/resolve/stub-resolv.conf", filepath.Join(root, "etc/resolv.conf")); err != nil {
		return err
	}
	return os.Symlink("/etc/machine-id", filepath.Join(root, "var/lib/dbus/machine-id"))
}

// unpackRecipe writes the embedded recipe below dir, readable by all whatever the umask.
func unpackRecipe(dir string) error {
	return fs.WalkDir(recipeFiles, "debian", func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		to := filepath.Join(dir, strings.TrimPrefix(path, "debian"))
		if e.IsDir() {
			return makeDir(to, 0o755)
		}
		b, err := recipeFiles.ReadFile(path)
		if err != nil {
			return err
		}
		return writeFile(to, b, 0o644)
	})
}

func makeDir(path string, mode fs.FileMode) error {
	if err := os.MkdirAll(path, mode); err != nil {
		return err
	}
	return os.Chmod(path, mode)
}

func writeFile(path string, b []byte, mode fs.FileMode) error {
	if err := os.WriteFile(path, b, mode); err != nil {
		return err
	}
	return os.Chmod(path, mode)
}

// stages tells what mmdebstrap is doing, from the lines it prints ("I: …").
type stages struct {
	log  io.Writer
	say  func(stage string)
	line []byte
}

func (s *stages) Write(p []byte) (int, error) {
	s.line = append(s.line, p...)
	for {
		i := bytes.IndexByte(s.line, '\n')
		if i < 0 {
			break
		}
		if stage, ok := strings.CutPrefix(string(s.line[:i]), "I: "); ok && strings.HasSuffix(stage, "...") {
			s.say(strings.TrimSuffix(stage, "..."))
		}
		s.line = s.line[i+1:]
	}
	return s.log.Write(p)
}
