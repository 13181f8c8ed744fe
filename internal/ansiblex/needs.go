package ansiblex

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/internal/galaxy"
)

// Needs is what a play's requirements file asks for.
type Needs struct {
	galaxy.File
	// Digest is that of the file: "sha256:<hex>".
	Digest string
	// Key names, in a cache, what is installed for it.
	Key string
	// Here: all of it is in the folder, where Ansible finds it, and nothing is fetched.
	Here bool
}

// ReadNeeds reads the requirements file of a play, in its unpacked bundle; nil: it names none.
// Errors are Permanent.
func ReadNeeds(root *os.Root, p Play) (*Needs, error) {
	if p.Requirements == "" {
		return nil, nil
	}
	refuse := func(err error) error {
		return errs.NewPermanent("requirements file "+p.Requirements, "read", err, "mend it")
	}
	data, err := root.ReadFile(filepath.FromSlash(p.Requirements))
	if err != nil {
		return nil, refuse(errs.Reason("it is not a file of the playbook's folder"))
	}
	file, err := galaxy.Parse(data)
	if err != nil {
		return nil, refuse(err)
	}
	sum := sha256.Sum256(data)
	n := &Needs{File: file, Digest: "sha256:" + hex.EncodeToString(sum[:])}
	cfgPath, cfg := readConfiguration(root, p.Playbooks[0])
	n.Here = file.In(func(kind galaxy.Kind, name string) bool { return inFolder(root, p.Playbooks, cfgPath, cfg, kind, name) })
	n.Key, err = n.key(root, p, cfgPath)
	return n, err
}

// key is of all that decides what is installed: the file, the configuration, which may name
// servers, and the whole folder where the file leads into it. So no play gets what somebody
// else's folder has under the same name.
func (n *Needs) key(root *os.Root, p Play, cfgPath string) (string, error) {
	var cfg []byte
	if cfgPath != "" {
		rel, err := filepath.Rel(root.Name(), cfgPath)
		if err != nil {
			return "", err
		}
		if cfg, err = root.ReadFile(rel); err != nil {
			return "", err
		}
	}
	bundle := ""
	if n.Local(root) {
		bundle = p.Bundle
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "1 %s %x %s", n.Digest, sha256.Sum256(cfg), bundle))
	return hex.EncodeToString(sum[:]), nil
}

// inFolder reports whether Ansible finds a role or collection in the folder for each of the
// playbooks: beside the playbook, or on a path of the folder's ansible.cfg.
func inFolder(root *os.Root, playbooks []string, cfgPath string, cfg configuration, kind galaxy.Kind, name string) bool {
	part, paths := name, cfg.paths(filepath.Dir(cfgPath), "defaults.roles_path")
	beside := "roles"
	if kind == galaxy.Collection {
		namespace, collection, _ := strings.Cut(name, ".")
		part, beside = filepath.Join("ansible_collections", namespace, collection), "collections"
		paths = cfg.collections(filepath.Dir(cfgPath))
	}
	if !filepath.IsLocal(part) {
		return false
	}
	for _, path := range paths {
		if rel, err := filepath.Rel(root.Name(), path); err == nil && isFolder(root, filepath.Join(rel, part)) {
			return true
		}
	}
	for _, playbook := range playbooks {
		if !isFolder(root, filepath.Join(filepath.Dir(playbook), beside, part)) {
			return false
		}
	}
	return true
}

func isFolder(root *os.Root, path string) bool {
	if !filepath.IsLocal(path) {
		return false
	}
	info, err := root.Stat(path)
	return err == nil && info.IsDir()
}
