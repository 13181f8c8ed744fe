package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"burrow.dev/burrow/activities/image"
	"burrow.dev/burrow/internal/bundle"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/internal/gateway"
	"burrow.dev/burrow/manifest"
	"burrow.dev/burrow/workflows"
)

// plan is what an apply will do: the documents to build in dependency order, those that
// stand already, and the playbook bundles that go with them.
type plan struct {
	documents []workflows.Document
	unchanged []string
	bundles   []packed
}

// packed is a playbook's folder as an archive. Its temporary file has no name, so that
// it is gone with us, however we end.
type packed struct {
	digest string
	size   int64
	file   *os.File
}

// makePlan compares documents with what stands. A document whose resource stands
// differently is refused by name: changing what is built is an operation of its own.
func makePlan(set *manifest.Set, known manifest.Known) (*plan, error) {
	p := &plan{}
	levels, err := manifest.Order(set.Documents)
	if err != nil {
		return nil, err
	}
	for _, i := range slices.Concat(levels...) {
		if err := p.add(set, set.Documents[i], known); err != nil {
			p.close()
			return nil, err
		}
	}
	return p, nil
}

// add plans one document, and before it the volumes it declares as persistent.
func (p *plan) add(set *manifest.Set, doc *manifest.Document, known manifest.Known) error {
	w := workflows.Document{Ref: doc.Ref()}
	digest := ""
	var err error
	switch {
	case doc.Network != nil:
		w.Network = &workflows.CreateNetworkIn{Metadata: doc.Metadata, Spec: *doc.Network}
	case doc.Volume != nil:
		w.Volume = &workflows.CreateVolumeIn{Metadata: doc.Metadata, Spec: *doc.Volume}
	case doc.Image != nil:
		w.Image = &workflows.CreateImageIn{Metadata: doc.Metadata, Spec: doc.Image, Host: doc.Metadata.NodeName, Import: importOf(doc)}
	case doc.Server != nil:
		if err := p.addPersistent(doc, known); err != nil {
			return err
		}
		if digest, err = p.pack(doc); err != nil {
			return err
		}
		w.Server = &workflows.ProvisionServerIn{Metadata: doc.Metadata, Spec: *doc.Server, Bundle: digest}
		w.DependsOn = dependencies(doc)
	}
	stands, err := standing(doc, digest, known)
	if err != nil {
		return err
	}
	if stands {
		p.unchanged = append(p.unchanged, w.Ref)
		return nil
	}
	p.documents = append(p.documents, w)
	return nil
}

// addPersistent makes a Volume of each data disk that is declared to outlive its server.
func (p *plan) addPersistent(doc *manifest.Document, known manifest.Known) error {
	for i, s := range doc.Server.Storage {
		if s.Spec == nil || !s.Spec.Persistent {
			continue
		}
		vol := &manifest.Document{
			APIVersion: doc.APIVersion, Kind: manifest.KindVolume, File: doc.File, Line: doc.Line, Dir: doc.Dir,
			Metadata: manifest.Metadata{Name: s.Name, NodeName: doc.Metadata.NodeName}, Volume: s.Spec,
		}
		doc.Server.Storage[i].Spec = nil
		if err := p.add(nil, vol, known); err != nil {
			return err
		}
	}
	return nil
}

func importOf(doc *manifest.Document) *image.ImportIn {
	in := &image.ImportIn{
		Name: doc.Metadata.Name, URL: doc.Image.SourceURL, SHA256: doc.Image.SHA256, ChecksumURL: doc.Image.ChecksumURL,
		User: doc.Image.User, OSName: doc.Image.OSName, OSVersion: doc.Image.OSVersion,
	}
	if path, ok := strings.CutPrefix(in.URL, "file:"); ok {
		path = strings.TrimPrefix(path, "//")
		if !filepath.IsAbs(path) {
			path = filepath.Join(doc.Dir, path)
		}
		in.URL, in.File = "", path
	}
	return in
}

// dependencies are the documents a server needs ready: those it names and those it uses.
func dependencies(doc *manifest.Document) []string {
	refs := slices.Clone(doc.Server.DependsOn)
	for _, nic := range doc.Server.NetworkInterface {
		refs = append(refs, manifest.Ref(manifest.KindNetwork, nic.Network))
	}
	for _, s := range doc.Server.Storage {
		if s.Spec == nil {
			refs = append(refs, manifest.Ref(manifest.KindVolume, s.Name))
		}
	}
	refs = append(refs, manifest.Ref(manifest.KindImage, doc.Server.Image))
	slices.Sort(refs)
	return slices.Compact(refs)
}

// pack archives a server's playbook folder and makes its paths those of the archive.
func (p *plan) pack(doc *manifest.Document) (digest string, err error) {
	a := doc.Server.Ansible
	if a == nil {
		return "", nil
	}
	paths := slices.Clone(a.Playbook)
	if a.Inventory != "" {
		paths = append(paths, a.Inventory)
	}
	dir, rel, err := bundle.Root(doc.Dir, paths...)
	if err != nil {
		return "", err
	}
	b, err := packFolder(dir)
	if err != nil {
		return "", err
	}
	p.bundles = append(p.bundles, b)
	a.Playbook = rel[:len(a.Playbook)]
	if a.Inventory != "" {
		a.Inventory = rel[len(rel)-1]
	}
	return b.digest, nil
}

// packFolder archives a folder into a temporary file.
func packFolder(dir string) (packed, error) {
	f, err := os.CreateTemp("", "burrow-bundle-*.tar.zst")
	if err != nil {
		return packed{}, err
	}
	if err := os.Remove(f.Name()); err != nil {
		return packed{}, errors.Join(err, f.Close())
	}
	digest, size, err := bundle.Pack(dir, f)
	if err != nil {
		return packed{}, errors.Join(err, f.Close())
	}
	return packed{digest: digest, size: size, file: f}, nil
}

// close lets the temporary archives go.
func (p *plan) close() {
	for _, b := range p.bundles {
		_ = b.file.Close() // nothing of it is kept
	}
}

// upload sends the archives that the blob store does not have.
func (p *plan) upload(ctx context.Context, gw *gateway.Client) error {
	for _, b := range p.bundles {
		if err := upload(ctx, gw, b); err != nil {
			return err
		}
	}
	return nil
}

func upload(ctx context.Context, gw *gateway.Client, b packed) error {
	has, err := gw.HasBundle(ctx, b.digest)
	if err != nil || has {
		return err
	}
	if _, err := b.file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	return gw.UploadBundle(ctx, b.digest, b.size, b.file)
}

// requestedBy names who asked, in every document.
func (p *plan) requestedBy(who string) {
	for _, d := range p.documents {
		switch {
		case d.Network != nil:
			d.Network.RequestedBy = who
		case d.Volume != nil:
			d.Volume.RequestedBy = who
		case d.Image != nil:
			d.Image.RequestedBy = who
		case d.Server != nil:
			d.Server.RequestedBy = who
		}
	}
}

func (p *plan) summary() string {
	var refs []string
	for _, d := range p.documents {
		refs = append(refs, d.Ref)
	}
	return "apply " + strings.Join(refs, ", ")
}

// standing reports whether a document's resource stands as declared. One that failed, or
// is not there, does not; one that stands differently is an error naming the fields.
func standing(doc *manifest.Document, digest string, known manifest.Known) (bool, error) {
	rec, ok := known.Lookup(doc.Kind, doc.Metadata.Name)
	if !ok || rec.Status.Phase == manifest.PhaseFailed || !rec.Status.Phase.Settled() {
		return false, nil
	}
	want, err := doc.SpecJSON()
	if err != nil {
		return false, err
	}
	changed, err := differences(rec.Spec, want)
	if err != nil {
		return false, err
	}
	changed = append(changed, metadataDifferences(rec.Metadata.Metadata, doc.Metadata)...)
	if digest != rec.Status.Bundle {
		changed = append(changed, "the playbook's folder")
	}
	if len(changed) == 0 {
		return true, nil
	}
	return false, &ExitError{Code: ExitInvalid, Err: errs.NewPermanent(fmt.Sprintf("%s:%d: %s", doc.File, doc.Line, doc.Ref()), "apply",
		errs.Reason("it stands, and differs in %s: changing what is built is not supported yet", strings.Join(changed, ", ")),
		fmt.Sprintf("undo the edit, or `burrow delete %s` and apply again", doc.Ref()))}
}

// metadataDifferences names the fields in which two documents' metadata differ.
func metadataDifferences(have, want manifest.Metadata) []string {
	var fields []string
	if have.Comment != want.Comment {
		fields = append(fields, "metadata.comment")
	}
	if !maps.Equal(have.Labels, want.Labels) {
		fields = append(fields, "metadata.labels")
	}
	if have.NodeName != want.NodeName {
		fields = append(fields, "metadata.nodeName")
	}
	return fields
}

// differences names the top-level fields in which two specs differ.
func differences(have, want []byte) ([]string, error) {
	if bytes.Equal(have, want) {
		return nil, nil
	}
	var a, b map[string]any
	if err := json.Unmarshal(have, &a); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(want, &b); err != nil {
		return nil, err
	}
	var fields []string
	for key := range a {
		if !reflect.DeepEqual(a[key], b[key]) {
			fields = append(fields, "spec."+key)
		}
	}
	for key := range b {
		if _, both := a[key]; !both {
			fields = append(fields, "spec."+key)
		}
	}
	slices.Sort(fields)
	return fields, nil
}
