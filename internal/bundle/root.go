package bundle

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"burrow.dev/burrow/internal/errs"
)

// Root finds the folder that a bundle must hold, so that the files at paths (relative
// to manifestDir, or absolute) are in it with what Ansible looks for beside them.
// rel are the paths inside dir, slash-separated, in order.
//
// It is the folder that the files share; and when a folder above it, up to
// manifestDir, has an ansible.cfg or roles/, that one, since people run Ansible there.
// A path that does not exist or is no file is Permanent.
func Root(manifestDir string, paths ...string) (dir string, rel []string, err error) {
	base, err := filepath.Abs(manifestDir)
	if err != nil {
		return "", nil, err
	}
	if len(paths) == 0 {
		return "", nil, errs.NewPermanent("playbook", "find folder", errs.Reason("no path given"), "")
	}
	files := make([]string, len(paths))
	for i, p := range paths {
		if files[i], err = existing(base, p); err != nil {
			return "", nil, err
		}
		if i == 0 {
			dir = filepath.Dir(files[0])
		}
		for !within(dir, files[i]) {
			dir = filepath.Dir(dir)
		}
	}
	dir = widen(base, dir)
	if dir == filepath.Dir(dir) {
		return "", nil, errs.NewPermanent("playbook "+paths[0], "find folder",
			errs.Reason("%s share no folder but /", strings.Join(paths, ", ")), "put playbook and inventory into one folder")
	}
	for _, f := range files {
		r, err := filepath.Rel(dir, f)
		if err != nil {
			return "", nil, err
		}
		rel = append(rel, filepath.ToSlash(r))
	}
	return dir, rel, nil
}

// existing gives the absolute path of a regular file (symlinks to one are files).
func existing(base, path string) (string, error) {
	abs := path
	if !filepath.IsAbs(path) {
		abs = filepath.Join(base, path)
	}
	info, err := os.Stat(abs)
	if err != nil {
		var pe *os.PathError
		if errors.As(err, &pe) {
			err = pe.Err
		}
		return "", errs.NewPermanent("playbook file "+path, "open", err,
			fmt.Sprintf("paths are relative to the manifest's folder, %s", base))
	}
	if info.IsDir() {
		// An inventory may be a folder; a playbook is found wrong by the syntax check.
		return filepath.Clean(abs), nil
	}
	if !info.Mode().IsRegular() {
		return "", errs.NewPermanent("playbook file "+path, "open", errs.Reason("it is not a regular file"), "")
	}
	return filepath.Clean(abs), nil
}

// widen walks up from dir to base and takes the highest folder that Ansible is run in.
func widen(base, dir string) string {
	best := dir
	if !within(base, dir) {
		return best
	}
	for d := dir; ; d = filepath.Dir(d) {
		if isAnsibleHome(d) {
			best = d
		}
		if d == base {
			return best
		}
	}
}

func isAnsibleHome(dir string) bool {
	if info, err := os.Stat(filepath.Join(dir, "ansible.cfg")); err == nil && info.Mode().IsRegular() {
		return true
	}
	info, err := os.Stat(filepath.Join(dir, "roles"))
	return err == nil && info.IsDir()
}

// within reports whether path is dir or below it.
func within(dir, path string) bool {
	r, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(r)
}
