package ansiblex

import (
	"context"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"

	"burrow.dev/burrow/internal/errs"
)

// Effective is the inventory of a run as Ansible reads it: the user's, then ours.
type Effective struct {
	// Sources are the user's inventories, in their order, as paths in the bundle.
	Sources []string `json:"sources"`
	// Encrypted are variable files that ansible-vault has encrypted; they count as empty here.
	Encrypted []string               `json:"encrypted,omitempty"`
	Groups    map[string]ScriptGroup `json:"groups"`
	// Hosts are the run's servers, each with all its variables by name.
	Hosts map[string][]Variable `json:"hosts"`
}

// Variable is one of a host, with the value that a run uses. What is a password by its name is hidden.
type Variable struct {
	Name  string `json:"name"`
	Value any    `json:"value"`
	// Ours: burrow decides how the host is reached.
	Ours bool `json:"ours,omitempty"`
	// Overridden are files of the user's, as paths in the bundle, that say it for this host
	// too, and in vain.
	Overridden []string `json:"overridden,omitempty"`
}

// Effective has Ansible read the inventory that a run of p would have. The folder's bundle is
// unpacked and not prepared. No program of Ansible's → Operator; it refuses an inventory →
// Permanent.
func (f *Folder) Effective(ctx context.Context, p Play) (Effective, error) {
	root, err := os.OpenRoot(f.Bundle())
	if err != nil {
		return Effective{}, err
	}
	defer root.Close()
	files, encrypted, err := varsFiles(root)
	if err != nil {
		return Effective{}, errs.NewPermanent("playbook folder", "read its variables", err, "")
	}
	prepared, err := f.Prepare(p)
	if err != nil {
		return Effective{}, err
	}
	out := Effective{Encrypted: encrypted, Hosts: map[string][]Variable{}}
	theirs := answer{}
	if users := prepared.inventories[:len(prepared.inventories)-1]; len(users) > 0 {
		for _, source := range users {
			out.Sources = append(out.Sources, f.inBundle(source))
		}
		// Without the files of variables beside it: what the inventory itself says.
		if theirs, err = prepared.ask(ctx, users, nil, "ANSIBLE_VARS_ENABLED="); err != nil {
			return Effective{}, err
		}
	}
	beside := filepath.Dir(p.Playbooks[0])
	all, err := prepared.ask(ctx, prepared.inventories, []string{"--playbook-dir", filepath.Join(f.Bundle(), beside)})
	if err != nil {
		return Effective{}, err
	}
	out.Groups = all.groups
	for _, h := range p.Hosts {
		ours, err := plain(f.connection(h, p.Burrow))
		if err != nil {
			return Effective{}, err
		}
		said := files.of(h.Name, all.groupsOf(h.Name), append(out.folders(root), beside))
		for name := range theirs.hosts[h.Name] {
			said[name] = append(said[name], out.Sources...)
		}
		out.Hosts[h.Name] = f.variables(all.hosts[h.Name], ours, said)
	}
	return out, nil
}

// plain gives values as they come back from JSON, to compare them.
func plain(vars map[string]any) (out map[string]any, err error) {
	text, err := json.Marshal(vars)
	if err == nil {
		err = json.Unmarshal(text, &out)
	}
	return out, err
}

// variables lists a host's, with the files that said those of ours too.
func (f *Folder) variables(all, ours map[string]any, said map[string][]string) []Variable {
	out := []Variable{}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		v := Variable{Name: name, Value: f.shown(name, all[name])}
		if value, ok := ours[name]; ok && reflect.DeepEqual(value, all[name]) {
			v.Ours, v.Overridden = true, said[name]
			slices.Sort(v.Overridden)
			v.Overridden = slices.Compact(v.Overridden)
		}
		out = append(out, v)
	}
	return out
}

// folders are where Ansible looks for variables beside the inventories.
func (e Effective) folders(root *os.Root) []string {
	var dirs []string
	for _, source := range e.Sources {
		if info, err := root.Stat(source); err == nil && info.IsDir() {
			dirs = append(dirs, source)
			continue
		}
		dirs = append(dirs, filepath.Dir(source))
	}
	return dirs
}

// inBundle gives a path as the user knows it.
func (f *Folder) inBundle(path string) string {
	if rel, err := filepath.Rel(f.Bundle(), path); err == nil {
		return rel
	}
	return path
}

// groupsOf lists the groups that a host is in, through groups of groups too.
func (a answer) groupsOf(host string) []string {
	in := map[string]bool{"all": true}
	for name, g := range a.groups {
		if slices.Contains(g.Hosts, host) {
			in[name] = true
		}
	}
	for grown := true; grown; {
		grown = false
		for name, g := range a.groups {
			if !in[name] && slices.ContainsFunc(g.Children, func(c string) bool { return in[c] && c != "all" }) {
				in[name], grown = true, true
			}
		}
	}
	return slices.Sorted(maps.Keys(in))
}
