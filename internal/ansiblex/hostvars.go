package ansiblex

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// hostVars writes variables of a host into host_vars/<host>/ beside a playbook, where they
// beat the user's inventory, group_vars and host_vars. Ansible takes host_vars/db/ or
// host_vars/db.yml, never both: a file of the user's moves into the folder, before ours.
func hostVars(root *os.Root, playbookDir, host string, vars map[string]any) error {
	dir := path.Join(filepath.ToSlash(playbookDir), "host_vars", host)
	if err := root.MkdirAll(filepath.FromSlash(path.Dir(dir)), 0o755); err != nil {
		return fmt.Errorf("make %s: %w", path.Dir(dir), err)
	}
	if err := makeVarsFolder(root, dir); err != nil {
		return fmt.Errorf("make %s: %w", dir, err)
	}
	name, err := lastName(root, dir)
	if err != nil {
		return err
	}
	data, err := json.MarshalIndent(vars, "", "  ")
	if err != nil {
		return err
	}
	return root.WriteFile(filepath.FromSlash(path.Join(dir, name)), data, 0o644)
}

// makeVarsFolder makes dir a real folder that holds what Ansible would have read without us:
// a folder, a symlink to one (which others may share), or the first of the files with
// one of Ansible's extensions.
func makeVarsFolder(root *os.Root, dir string) error {
	for _, ext := range []string{"", ".yml", ".yaml", ".json"} {
		name := filepath.FromSlash(dir + ext)
		info, err := root.Lstat(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		if ext == "" && info.IsDir() {
			return nil
		}
		return moveInto(root, name, filepath.FromSlash(dir), info)
	}
	return root.Mkdir(filepath.FromSlash(dir), 0o755)
}

// moveInto makes the folder dir with name (a file or symlink) in it; name may be dir itself.
func moveInto(root *os.Root, name, dir string, info fs.FileInfo) error {
	const aside = ".burrow-aside"
	if err := root.Rename(name, dir+aside); err != nil {
		return err
	}
	if err := root.Mkdir(dir, 0o755); err != nil {
		return err
	}
	inside := filepath.Join(dir, filepath.Base(name))
	if info.Mode()&fs.ModeSymlink == 0 {
		return root.Rename(dir+aside, inside)
	}
	// One folder deeper a relative symlink needs one step more.
	target, err := root.Readlink(dir + aside)
	if err != nil {
		return err
	}
	return errors.Join(root.Symlink(path.Join("..", target), inside), root.Remove(dir+aside))
}

// lastName gives a name that sorts after all that is in dir: the last file wins.
func lastName(root *os.Root, dir string) (string, error) {
	entries, err := fs.ReadDir(root.FS(), dir)
	if err != nil {
		return "", err
	}
	name := "~burrow.yml"
	for _, e := range entries {
		for e.Name() >= name {
			name = "\U0010FFFD" + name
			if strings.Count(name, "\U0010FFFD") > 8 {
				return "", fmt.Errorf("%s: no name sorts after %q", dir, e.Name())
			}
		}
	}
	return name, nil
}
