package manifest

import (
	"fmt"
	"os"
	"path/filepath"
)

// Validate checks a set as a whole, against itself and against what is known: names,
// references, addresses, overlaps, cycles, files beside the manifest. It changes nothing
// and asks nobody. Fields that Load complained about are left alone.
// known nil means that nothing exists but host-bridge.
func Validate(set *Set, known Known) Problems {
	if known == nil {
		known = NewSnapshot(nil, nil, false)
	}
	v := &validator{set: set, known: known}
	v.duplicates()
	v.networks()
	v.addresses()
	v.macs()
	for _, doc := range set.Documents {
		switch {
		case doc.Server != nil:
			v.server(doc)
		case doc.Volume != nil:
			v.volume(doc)
		case doc.Playbook != nil:
			v.playbook(doc)
		}
	}
	v.attachments()
	v.cycles()
	v.out.problems.sort()
	return v.out.problems
}

type validator struct {
	set   *Set
	known Known
	out   collector
	// segments are the networks that an address can be looked up in, by name.
	segments map[string]segment
}

// complain reports a problem of a field, unless the field was complained about before.
func (v *validator) complain(doc *Document, path, message, next string) {
	if !doc.sound(path) {
		return
	}
	where := doc.where(path)
	v.out.problem(doc.Ref(), issue{at: where.at, path: where.path, message: message, next: next})
}

// duplicates: a name is unique in its kind.
func (v *validator) duplicates() {
	first := map[string]*Document{}
	for _, doc := range v.set.Documents {
		if doc.Metadata.Name == "" {
			continue
		}
		if other, twice := first[doc.Ref()]; twice {
			v.complain(doc, "metadata.name", fmt.Sprintf("%s is declared twice (first in %s, line %d)", doc.Ref(), other.File, other.Line), "give each its own name")
			continue
		}
		first[doc.Ref()] = doc
	}
}

// exists reports whether a resource is in this apply or known.
func (v *validator) exists(kind Kind, name string) bool {
	if v.set.Find(kind, name) != nil {
		return true
	}
	if kind == KindNetwork && name == HostBridge {
		return true // `burrow up` declares it where there is none
	}
	if _, ok := v.known.Lookup(kind, name); ok {
		return true
	}
	return kind == KindImage && v.known.Catalogue(name)
}

// reference reports what a field names and nobody has.
func (v *validator) reference(doc *Document, path string, kind Kind, name, next string) {
	if name == "" {
		return
	}
	if v.exists(kind, name) {
		v.usable(doc, path, kind, name)
		return
	}
	if near := Nearest(name, v.names(kind)); near != "" {
		next = "did you mean " + near + "?"
	} else if !v.known.Connected() {
		next += " (burrow was not asked what exists: no gateway answered)"
	}
	v.complain(doc, path, fmt.Sprintf("%s %s is neither in this apply nor known", kind.Word(), quote(name)), next)
}

// usable reports a reference to what is known but has failed, or is on its way out.
func (v *validator) usable(doc *Document, path string, kind Kind, name string) {
	record, ok := v.known.Lookup(kind, name)
	if !ok || v.set.Find(kind, name) != nil {
		return
	}
	switch record.Status.Phase {
	case PhaseFailed:
		v.complain(doc, path, fmt.Sprintf("%s %s has failed", kind.Word(), quote(name)), "apply it again, in this apply or before it")
	case PhaseDamaged:
		v.complain(doc, path, fmt.Sprintf("%s %s has a record that cannot be read", kind.Word(), quote(name)), "`burrow describe "+Ref(kind, name)+"` says what to do")
	case PhaseDeleting:
		v.complain(doc, path, fmt.Sprintf("%s %s is being deleted", kind.Word(), quote(name)), "wait until it is gone, and declare it anew")
	}
}

// names are all that a reference of a kind could have meant.
func (v *validator) names(kind Kind) []string {
	var names []string
	for _, doc := range v.set.Documents {
		if doc.Kind == kind {
			names = append(names, doc.Metadata.Name)
		}
	}
	for _, r := range v.known.Each(kind) {
		names = append(names, r.Metadata.Name)
	}
	if kind == KindImage {
		names = append(names, v.known.CatalogueNames()...)
	}
	return names
}

func (v *validator) server(doc *Document) {
	spec := doc.Server
	v.reference(doc, "spec.mmImage", KindImage, spec.Image, "add an Image document, or see `burrow get images`")
	if spec.BootVolume.Name != "" {
		v.reference(doc, "spec.bootVolume.metadata.name", KindVolume, spec.BootVolume.Name, "add a Volume document of kind os")
	}
	v.bootSize(doc)
	for i, s := range spec.Storage {
		if s.Spec == nil {
			v.reference(doc, fmt.Sprintf("spec.storage[%d].metadata.name", i), KindVolume, s.Name,
				"add a Volume document, or a spec with a size here")
		}
	}
	for i, nic := range spec.NetworkInterface {
		v.reference(doc, fmt.Sprintf("spec.networkInterface[%d].networkname", i), KindNetwork, nic.Network, "add a Network document")
	}
	v.dependsOn(doc, spec.DependsOn)
	v.files(doc)
}

func (v *validator) dependsOn(doc *Document, refs []string) {
	for i, ref := range refs {
		kind, name, err := ParseKindName(ref)
		if err == nil {
			v.reference(doc, doc.element("spec.dependsOn", i), kind, name, "add its document")
		}
	}
}

// playbook: the servers it names are there, and its labels find at least one.
func (v *validator) playbook(doc *Document) {
	spec := doc.Playbook
	for i, name := range spec.Targets.Servers {
		v.reference(doc, fmt.Sprintf("spec.targets.servers[%d]", i), KindServer, name, "add a Server document")
	}
	v.dependsOn(doc, spec.DependsOn)
	v.files(doc)
	if len(spec.Targets.Selector) == 0 {
		return
	}
	for _, other := range v.set.Documents {
		if other.Server != nil && doc.selects(other) {
			return
		}
	}
	for _, rec := range v.known.Each(KindServer) {
		if (Targets{Selector: spec.Targets.Selector}).Matches("", rec.Metadata.Labels) {
			return
		}
	}
	v.complain(doc, "spec.targets.selector", "no server has these labels, in this apply or before it", "label the servers, or mend the selector")
}

// bootSize: a boot volume holds its image, as far as the image's size is known.
func (v *validator) bootSize(doc *Document) {
	size := doc.Server.BootVolume.Size
	record, ok := v.known.Lookup(KindImage, doc.Server.Image)
	if !ok || record.Status.Image == nil || size == 0 || size >= record.Status.Image.VirtualGiB {
		return
	}
	v.complain(doc, "spec.bootVolume.spec.size", fmt.Sprintf("%d GiB is smaller than image %s (%d GiB)", size, doc.Server.Image, record.Status.Image.VirtualGiB),
		"make it larger, or leave it out")
}

func (v *validator) volume(doc *Document) {
	spec := doc.Volume
	if spec.Image != "" {
		v.reference(doc, "spec.image", KindImage, spec.Image, "add an Image document, or see `burrow get images`")
	}
	record, ok := v.known.Lookup(KindVolume, doc.Metadata.Name)
	if ok && record.Status.Volume != nil && spec.Size < record.Status.Volume.SizeGiB {
		v.complain(doc, "spec.size", fmt.Sprintf("volume %s has %d GiB already, and a volume is never shrunk", quote(doc.Metadata.Name), record.Status.Volume.SizeGiB),
			fmt.Sprintf("write at least %d", record.Status.Volume.SizeGiB))
	}
}

// files: what the playbook needs is there before anything is built.
func (v *validator) files(doc *Document) {
	ansible, at := doc.Ansible()
	if ansible == nil || doc.Dir == "" || ansible.Source != nil || ansible.Pull != nil {
		return // what is in a repository is known when it is fetched; what is pulled, only then
	}
	if ansible.RemotePlaybook {
		v.file(doc, at+".remotePlaybook", ansible.Playbook[0], false)
		return
	}
	for i, playbook := range ansible.Playbook {
		v.file(doc, doc.element(at+".playbook", i), playbook, false)
	}
	if ansible.Inventory != "" {
		v.file(doc, at+".inventory", ansible.Inventory, true)
	}
	if ansible.Requirements != "" {
		v.file(doc, at+".requirements", ansible.Requirements, false)
	}
}

func (v *validator) file(doc *Document, path, name string, folder bool) {
	full := name
	if !filepath.IsAbs(full) {
		full = filepath.Join(doc.Dir, filepath.FromSlash(name))
	}
	info, err := os.Stat(full)
	switch {
	case os.IsNotExist(err):
		v.complain(doc, path, name+" does not exist (looked for beside this file); nothing is built", "create it, or mend the path")
	case err != nil:
		v.complain(doc, path, fmt.Sprintf("%s cannot be read: %v; nothing is built", name, pathError(err)), "mend its permissions")
	case !info.Mode().IsRegular() && !(folder && info.IsDir()):
		v.complain(doc, path, name+" is not a regular file; nothing is built", "name the file")
	}
}
