package manifest

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// playbook brings a Playbook's spec into its normal form.
func (d *decoder) playbook(in playbookInput) *PlaybookSpec {
	for field, set := range map[string]bool{"pull": in.Pull != nil, "remotePlaybook": in.RemotePlaybook != ""} {
		if set {
			d.complain("spec."+field, "runs in a guest, and a Playbook runs over several from outside", "use playbook, or write it into the servers")
		}
	}
	spec := &PlaybookSpec{Ansible: *d.ansible(in.ansibleInput, "spec"), DependsOn: d.dependsOn(in.DependsOn)}
	for i, name := range in.Targets.Servers {
		path := fmt.Sprintf("spec.targets.servers[%d]", i)
		d.name63(KindServer, path, name)
		if slices.Contains(in.Targets.Servers[:i], name) {
			d.complain(path, quote(name)+" is named twice", "name a server once")
		}
	}
	d.labels("spec.targets.selector", in.Targets.Selector)
	spec.Targets = Targets{Servers: in.Targets.Servers}
	if len(in.Targets.Selector) > 0 {
		spec.Targets.Selector = in.Targets.Selector
	}
	if len(in.Targets.Servers)+len(in.Targets.Selector) == 0 && d.doc.sound("spec.targets") {
		d.complain("spec.targets", "names no server", "name some in servers, or the labels that they have in selector")
	}
	return spec
}

// ansible brings what is to be run into its normal form; its fields are below path.
func (d *decoder) ansible(in ansibleInput, path string) *Ansible {
	d.duration(path+".timeout", in.Timeout)
	if in.Pull != nil || in.RemotePlaybook != "" {
		return d.inGuest(in, path)
	}
	if len(in.Playbook) == 0 && d.doc.sound(path) && d.doc.sound(path+".playbook") {
		if _, given := d.doc.places[path+".playbook"]; given {
			d.complain(path+".playbook", "is an empty list", "add an entry")
		} else {
			d.complain(path+".playbook", "is required", "add it")
		}
	}
	file := d.localPath
	if in.Source != nil {
		file = d.repositoryPath
	}
	for i := range in.Playbook {
		file(d.doc.element(path+".playbook", i), &in.Playbook[i])
	}
	if in.Inventory != "" {
		file(path+".inventory", &in.Inventory)
	}
	if in.Requirements != "" {
		file(path+".requirements", &in.Requirements)
	}
	d.extraArgs(path+".extra-args", in.ExtraArgs)
	d.secretName(path+".vaultPassword", in.VaultPassword)
	d.secretName(path+".becomePassword", in.BecomePassword)
	d.secretNames(path+".extraVars", in.ExtraVars)
	d.noConnection(path+".extraVars", in.ExtraVars)
	return &Ansible{
		Playbook: in.Playbook, Source: d.gitSource(path+".source", in.Source), Inventory: in.Inventory, Requirements: in.Requirements, ExtraArgs: in.ExtraArgs, ExtraVars: in.ExtraVars,
		VaultPassword: in.VaultPassword, BecomePassword: in.BecomePassword,
		Tags: in.Tags, SkipTags: in.SkipTags, Retries: in.Retries, Timeout: in.Timeout, OnFailure: in.OnFailure,
	}
}

// localPath cleans a path beside the manifest. A manifest from a URL has none.
func (d *decoder) localPath(path string, file *string) {
	if !d.doc.sound(path) {
		return
	}
	switch {
	case strings.TrimSpace(*file) == "":
		d.complain(path, "is empty", "name a file beside the manifest")
	case strings.ContainsAny(*file, "\x00\n"):
		d.complain(path, quote(*file)+" is not a file's name", "name a file beside the manifest")
	case d.doc.Dir == "":
		d.complain(path, "the manifest came from a URL, so no file can be read beside it", "download the manifest and its files, and apply them from there")
	default:
		*file = filepath.ToSlash(filepath.Clean(*file))
	}
}

// TargetIdentity says which build of a server a run was over: another one, or one that was
// rebuilt since, has another identity.
func TargetIdentity(rec Record) string {
	return rec.Metadata.Name + "@" + rec.Metadata.UID + "." + itoa(rec.Status.Rebuild)
}

// TargetName is the server's name in an identity.
func TargetName(identity string) string {
	name, _, _ := strings.Cut(identity, "@")
	return name
}

// ran reports whether a Playbook's latest run is what is declared now, over the servers
// that are there now. One that is not runs again: there is nothing about it to refuse.
func ran(rec *Record, d Declared) (bool, error) {
	have, err := withoutCommit(rec.Spec)
	if err != nil {
		return false, err
	}
	want, err := withoutCommit(d.Spec)
	if err != nil {
		return false, err
	}
	changed, err := SpecDifferences(have, want)
	if err != nil {
		return false, err
	}
	changed = append(changed, MetadataDifferences(rec.Metadata.Metadata, d.Metadata)...)
	return len(changed) == 0 && rec.Status.Bundle == d.Bundle && slices.Equal(rec.Status.Targets, d.Targets), nil
}

// withoutCommit gives a Playbook's spec without the commit that its source was at: what runs
// is the folder, and another commit may have the same.
func withoutCommit(spec json.RawMessage) (json.RawMessage, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(spec, &fields); err != nil || fields["source"] == nil {
		return spec, err
	}
	var source GitSource
	if err := json.Unmarshal(fields["source"], &source); err != nil {
		return nil, err
	}
	source.Commit = ""
	var err error
	if fields["source"], err = json.Marshal(source); err != nil {
		return nil, err
	}
	return json.Marshal(fields)
}
