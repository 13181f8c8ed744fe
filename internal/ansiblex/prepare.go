package ansiblex

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/crypto/ssh"

	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/manifest"
	"burrow.dev/burrow/playbook"
)

// Play is what to run of the folder's bundle. Paths are inside the bundle.
type Play struct {
	Playbooks []string
	Inventory string // the user's; may be empty
	// Requirements is a file of ansible-galaxy; may be empty.
	Requirements string
	// Bundle is the digest of the folder.
	Bundle string
	Hosts  []Host
	// Whole: plays may name every host of the inventory, not only Hosts.
	Whole     bool
	Tags      []string
	SkipTags  []string
	ExtraArgs []string
	// ExtraVars, with secrets in their places (AsData), reach the run by a file, as do the passwords.
	ExtraVars map[string]any
	// VaultPassword and BecomePassword may be empty.
	VaultPassword, BecomePassword string
	// SyntaxCheck parses and runs nothing. Hosts need a name only.
	SyntaxCheck bool
	// Burrow is the path of the program that ssh starts as "<Burrow> dial …".
	Burrow string
}

// PlayOf is the play that a manifest declares, without its hosts.
func PlayOf(spec manifest.Ansible) Play {
	return Play{
		Playbooks: spec.Playbook, Inventory: spec.Inventory, Requirements: spec.Requirements, Tags: spec.Tags, SkipTags: spec.SkipTags,
		ExtraArgs: spec.ExtraArgs, ExtraVars: spec.ExtraVars,
	}
}

// Prepared is a play whose files are in place.
type Prepared struct {
	folder      *Folder
	play        Play
	inventories []string
	cfgPath     string
	cfg         configuration
	needs       *Needs
	galaxy      string // where what it needs is installed; empty: nowhere
}

// Needs is what the play's requirements file asks for; nil: it has none.
func (p *Prepared) Needs() *Needs { return p.needs }

// Use has the play find what is installed in dir: roles/ and collections/.
func (p *Prepared) Use(dir string) { p.galaxy = dir }

// Prepare writes all that the play needs into the folder, whose bundle is unpacked, and
// hands the bundle over to the user. Nothing of the user has run before. An error about
// the bundle's content is Permanent.
func (f *Folder) Prepare(p Play) (*Prepared, error) {
	root, err := os.OpenRoot(f.Bundle())
	if err != nil {
		return nil, err
	}
	defer root.Close()
	if err := checkFiles(root, p); err != nil {
		return nil, err
	}
	out := &Prepared{folder: f, play: p}
	out.cfgPath, out.cfg = readConfiguration(root, p.Playbooks[0])
	if out.needs, err = ReadNeeds(root, p); err != nil {
		return nil, err
	}
	if err := f.writeEtc(p); err != nil {
		return nil, err
	}
	out.inventories = out.sources(root)
	if !p.SyntaxCheck {
		if err := f.writeHostVars(root, p); err != nil {
			return nil, err
		}
	}
	return out, f.handOver()
}

// writeHostVars writes the variables of the play's servers, and of this machine: tasks
// that are delegated to it would make their files in the account's home, and it has none.
func (f *Folder) writeHostVars(root *os.Root, p Play) error {
	vars := map[string]map[string]any{}
	for _, local := range []string{"localhost", "127.0.0.1"} {
		vars[local] = map[string]any{"ansible_remote_tmp": f.Path("work", "tmp")}
	}
	for _, h := range p.Hosts {
		vars[h.Name] = f.connection(h, p.Burrow)
	}
	dirs := map[string]bool{}
	for _, pb := range p.Playbooks {
		dirs[filepath.Dir(pb)] = true
	}
	for dir := range dirs {
		for host, v := range vars {
			if err := hostVars(root, dir, host, v); err != nil {
				return errs.NewPermanent("playbook folder "+dir, "add connection variables", err, "")
			}
		}
	}
	return nil
}

// checkFiles sees that what the manifest names is in the bundle, and decides nothing that is burrow's.
func checkFiles(root *os.Root, p Play) error {
	if len(p.Playbooks) == 0 {
		return errs.NewPermanent("playbook", "open", errs.Reason("none is named"), "")
	}
	for _, name := range append(slices.Clone(p.Playbooks), p.Inventory, p.Requirements) {
		if name == "" {
			continue
		}
		if strings.HasPrefix(name, "-") || !filepath.IsLocal(name) {
			return errs.NewPermanent("playbook file "+name, "open", errs.Reason("not a path inside the playbook's folder"), "")
		}
		if _, err := root.Stat(name); err != nil {
			return errs.NewPermanent("playbook file "+name, "open", errs.Reason("it is not in the playbook's folder"), "apply again")
		}
	}
	if err := manifest.CheckConnection(p.ExtraVars); err != nil {
		return errs.NewPermanent("spec.ansible.extraVars", "use", err, "remove it")
	}
	return nil
}

// writeEtc writes what the run reads and does not change.
func (f *Folder) writeEtc(p Play) error {
	known, err := knownHosts(p.Hosts)
	if err != nil {
		return errs.NewPermanent("known_hosts", "write", err, "")
	}
	inventory, err := f.inventory(p.Hosts, p.Burrow)
	if err != nil {
		return err
	}
	vars, err := json.Marshal(p.ExtraVars)
	if err != nil {
		return errs.NewPermanent("spec.ansible.extraVars", "encode", err, "")
	}
	files := map[string][]byte{
		"etc/known_hosts": known, "etc/burrow.yaml": inventory,
		"etc/ansible.cfg": nil, "etc/plugins/burrow.py": playbook.CallbackPlugin(),
	}
	for _, h := range p.Hosts {
		if h.Key != nil {
			files["etc/keys/"+h.Name+".pub"] = ssh.MarshalAuthorizedKey(h.Key)
		}
	}
	for name, data := range files {
		if err := f.give(name, data); err != nil {
			return fmt.Errorf("write %s: %w", name, err)
		}
	}
	// Secret from everybody but the run.
	private := map[string][]byte{varsFile: vars}
	if p.VaultPassword != "" {
		private[vaultFile] = []byte(p.VaultPassword)
	}
	if p.BecomePassword != "" {
		private[becomeFile] = []byte(p.BecomePassword)
	}
	for name, data := range private {
		if err := f.entrust(name, data); err != nil {
			return fmt.Errorf("write %s: %w", name, err)
		}
	}
	return nil
}

// sources lists the inventories, ours last: of two, the later one's values stay. With
// none in the manifest it is the one that the user's ansible.cfg names, if it is there.
func (p *Prepared) sources(root *os.Root) []string {
	var sources []string
	if p.play.Inventory != "" {
		sources = append(sources, p.folder.Path("work", "bundle", p.play.Inventory))
	} else {
		for _, item := range p.cfg.list("defaults.inventory", "defaults.hostfile") {
			path := filepath.Join(filepath.Dir(p.cfgPath), item)
			rel, err := filepath.Rel(root.Name(), path)
			if err != nil || !filepath.IsLocal(rel) {
				continue
			}
			if _, err := root.Stat(rel); err == nil {
				sources = append(sources, path)
			}
		}
	}
	return append(sources, p.folder.Path("etc", "burrow.yaml"))
}
