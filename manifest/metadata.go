package manifest

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"time"
)

var (
	labelWord   = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._/-]*[A-Za-z0-9])?$`)
	hostPattern = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?$`)
)

// document decodes a tree whose kind is known into the document's normal form.
func (d *decoder) document(tree *value) {
	switch d.doc.Kind {
	case KindServer:
		in := read[serverInput](d, tree)
		d.doc.Server = d.server(in)
	case KindNetwork:
		in := read[networkInput](d, tree)
		d.doc.Network = d.network(in)
	case KindVolume:
		in := read[volumeInput](d, tree)
		d.doc.Volume = volume(in)
	case KindImage:
		in := read[imageInput](d, tree)
		d.doc.Image = d.image(in)
	case KindPlaybook:
		in := read[playbookInput](d, tree)
		d.doc.Playbook = d.playbook(in)
	}
	d.specSize()
}

// read fills a kind's input, settles the metadata, and gives the spec.
func read[S any](d *decoder, tree *value) S {
	var in input[S]
	d.specFields = firstNames(fieldsOf(reflect.TypeFor[S]()))
	d.structure(tree, reflect.ValueOf(&in).Elem(), "")
	d.doc.APIVersion = in.APIVersion
	d.metadata(in.Metadata)
	return in.Spec
}

func (d *decoder) metadata(in metadataInput) {
	d.doc.Metadata = Metadata(in)
	if in.Name != "" && d.doc.sound("metadata.name") {
		if err := CheckName(d.doc.Kind, in.Name); err != nil {
			d.complain("metadata.name", err.Error(), "")
		}
	}
	if in.NodeName != "" && d.doc.sound("metadata.nodeName") {
		switch {
		case d.doc.Kind == KindImage:
			d.complain("metadata.nodeName", "an image is not pinned to a host", "remove it")
		case d.doc.Kind == KindPlaybook:
			d.complain("metadata.nodeName", "a playbook runs where its servers are", "remove it")
		case !hostPattern.MatchString(in.NodeName):
			d.complain("metadata.nodeName", quote(in.NodeName)+" is not a host's name", "see `burrow get hosts`")
		}
	}
	d.labels("metadata.labels", in.Labels)
}

// labels checks the words that hosts and Ansible groups are selected by.
func (d *decoder) labels(path string, labels map[string]string) {
	for _, key := range sortedKeys(labels) {
		text := labels[key]
		if len(key) > MaxNameLength || !labelWord.MatchString(key) || len(text) > MaxNameLength || text != "" && !labelWord.MatchString(text) {
			if own := join(path, key); d.doc.sound(own) {
				d.complain(own, "is not a label", "use at most 63 letters, digits, '.', '_', '/' and '-' for key and value")
			}
		}
	}
}

// specSize refuses a spec that etcd could not keep.
func (d *decoder) specSize() {
	data, err := json.Marshal(d.doc.Spec())
	if err == nil && len(data) > MaxSpecBytes {
		d.complain("spec", fmt.Sprintf("is %d KiB large", len(data)>>10), fmt.Sprintf("at most %d KiB are allowed; keep large variables in files beside the playbook", MaxSpecBytes>>10))
	}
}

// duration checks a Go duration; empty stays empty.
func (d *decoder) duration(path string, text Duration) {
	if text == "" || !d.doc.sound(path) {
		return
	}
	length, err := time.ParseDuration(string(text))
	if err != nil || length <= 0 {
		d.complain(path, quote(string(text))+" is not a duration", "write 90s, 30m or 2h")
	}
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
