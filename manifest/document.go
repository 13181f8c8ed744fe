package manifest

import (
	"encoding/json"
	"fmt"
	"strconv"
)

// Document is one document of an apply in normal form. Exactly one spec is set.
type Document struct {
	APIVersion string
	Kind       Kind
	Metadata   Metadata

	Server  *ServerSpec
	Network *NetworkSpec
	Volume  *VolumeSpec
	Image   *ImageSpec
	// Playbook is a run over several servers; a server's own is in its spec.
	Playbook *PlaybookSpec

	// Dir is the manifest's folder, absolute; "" when it came from a URL.
	Dir string
	// File and Line are where it starts.
	File string
	Line int

	places map[string]place    // by path in normal form
	bad    map[string]struct{} // paths that were already complained about
	start  position
	// prefixes are the prefix lengths that a user gave with static addresses, by path.
	prefixes map[string]int
}

// place is where a field was written, and under which name.
type place struct {
	at   position
	path string
}

// Ref names the document as users do: "server/db".
func (d *Document) Ref() string { return Ref(d.Kind, d.Metadata.Name) }

// Spec is the one that is set: *ServerSpec, *NetworkSpec, *VolumeSpec, *ImageSpec
// or *PlaybookSpec.
func (d *Document) Spec() any {
	switch d.Kind {
	case KindServer:
		return d.Server
	case KindNetwork:
		return d.Network
	case KindVolume:
		return d.Volume
	case KindImage:
		return d.Image
	case KindPlaybook:
		return d.Playbook
	}
	return nil
}

// Ansible is what the document runs, and the path of the fields it was read from; nil: nothing.
func (d *Document) Ansible() (run *Ansible, path string) {
	switch {
	case d.Server != nil:
		return d.Server.Ansible, "spec.ansible"
	case d.Playbook != nil:
		return &d.Playbook.Ansible, "spec"
	}
	return nil, ""
}

// SpecJSON is the spec as a record keeps it. Equal manifests give equal bytes.
func (d *Document) SpecJSON() (json.RawMessage, error) {
	data, err := json.Marshal(d.Spec())
	if err != nil {
		return nil, fmt.Errorf("%s: write spec as JSON: %w", d.Ref(), err)
	}
	return data, nil
}

// where finds a field's place: the field itself, or, for an element of a list that may
// be written as a single value, that value, or the nearest field around it.
func (d *Document) where(path string) place {
	if p, ok := d.places[path]; ok {
		return p
	}
	for short := path; short != ""; {
		short = parentPath(short)
		if p, ok := d.places[short]; ok {
			return place{at: p.at, path: path}
		}
	}
	return place{at: d.start, path: path}
}

// Problem is something wrong with a field that another than this package found.
func (d *Document) Problem(path, message, next string) Problem {
	where := d.where(path)
	return issue{at: where.at, path: where.path, message: message, next: next}.problem(d.Ref())
}

// element is the path of item i of a list; where the user wrote a single value, that of
// the value itself.
func (d *Document) element(path string, i int) string {
	item := path + "[" + strconv.Itoa(i) + "]"
	if _, ok := d.places[item]; !ok && i == 0 {
		return path
	}
	return item
}

// sound reports whether a field was read without a complaint.
func (d *Document) sound(path string) bool {
	_, bad := d.bad[path]
	return !bad
}

func (d *Document) spoil(path string) { d.bad[path] = struct{}{} }

func parentPath(path string) string {
	for i := len(path) - 1; i > 0; i-- {
		if path[i] == '.' || path[i] == '[' {
			return path[:i]
		}
	}
	return ""
}
