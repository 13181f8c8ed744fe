package ansiblex

import (
	"bytes"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
)

// maxVarsFile bounds a file that is looked into for names of variables; a larger one is not.
const maxVarsFile = 1 << 20

// vaultHeader begins a file that ansible-vault has encrypted.
const vaultHeader = "$ANSIBLE_VAULT;"

// namesIn are the variables of each file in a group_vars or host_vars folder, by its path.
type namesIn map[string][]string

// varsFiles finds out which file of variables says what, and empties those that are
// encrypted: only a run has what opens them.
func varsFiles(root *os.Root) (names namesIn, encrypted []string, err error) {
	names = namesIn{}
	err = fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || !slices.ContainsFunc(strings.Split(path.Dir(name), "/"), isVarsFolder) {
			return err
		}
		info, err := d.Info()
		if err != nil || info.Size() > maxVarsFile {
			return err
		}
		text, err := root.ReadFile(filepath.FromSlash(name))
		if err != nil {
			return err
		}
		if bytes.HasPrefix(text, []byte(vaultHeader)) {
			encrypted = append(encrypted, name)
			return root.WriteFile(filepath.FromSlash(name), []byte("{}\n"), info.Mode().Perm())
		}
		var vars map[string]any
		if yaml.Unmarshal(text, &vars) == nil { // else Ansible says what is wrong with it
			for v := range vars {
				names[name] = append(names[name], v)
			}
		}
		return nil
	})
	return names, encrypted, err
}

func isVarsFolder(name string) bool { return name == "group_vars" || name == "host_vars" }

// of gives for each variable the files that say it for a host with those groups, of the
// files that Ansible reads: those in a group_vars or host_vars of one of the folders.
func (n namesIn) of(host string, groups, folders []string) map[string][]string {
	said := map[string][]string{}
	for name, vars := range n {
		for _, dir := range folders {
			rel, err := filepath.Rel(dir, name)
			if err != nil || !applies(rel, host, groups) {
				continue
			}
			for _, v := range vars {
				said[v] = append(said[v], name)
			}
		}
	}
	return said
}

// applies reports whether the file rel, "group_vars/all.yml" or "host_vars/db/more.yml", is for a host.
func applies(rel, host string, groups []string) bool {
	parts := strings.Split(filepath.ToSlash(rel), "/")
	if len(parts) < 2 {
		return false
	}
	about := parts[1]
	if len(parts) == 2 {
		switch ext := path.Ext(about); ext {
		case ".yml", ".yaml", ".json":
			about = strings.TrimSuffix(about, ext)
		}
	}
	switch parts[0] {
	case "group_vars":
		return slices.Contains(groups, about)
	case "host_vars":
		return about == host
	}
	return false
}
