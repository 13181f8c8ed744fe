package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
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
	restart   bool // servers may be restarted for a change
	changes   []serverChange
	checkouts []checkout
}

// serverChange is what an apply does to a server that stands.
type serverChange struct {
	Ref     string            `json:"ref"`
	Effects []manifest.Effect `json:"effects"`
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
func makePlan(ctx context.Context, set *manifest.Set, known manifest.Known, restart bool) (*plan, error) {
	p := &plan{restart: restart}
	levels, err := manifest.Order(set.Documents)
	if err != nil {
		return nil, err
	}
	for _, i := range slices.Concat(levels...) {
		if err := p.add(ctx, set, set.Documents[i], known); err != nil {
			p.close()
			return nil, err
		}
	}
	if err := (workflows.ApplyIn{Documents: p.documents}).Fits(); err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

// add plans one document, and before it the volumes it declares as persistent.
func (p *plan) add(ctx context.Context, set *manifest.Set, doc *manifest.Document, known manifest.Known) error {
	w := workflows.Document{Ref: doc.Ref()}
	switch {
	case doc.Network != nil:
		w.Network = &workflows.CreateNetworkIn{Metadata: doc.Metadata, Spec: *doc.Network}
	case doc.Volume != nil:
		w.Volume = &workflows.CreateVolumeIn{Metadata: doc.Metadata, Spec: *doc.Volume}
	case doc.Image != nil:
		w.Image = &workflows.CreateImageIn{Metadata: doc.Metadata, Spec: doc.Image, Host: doc.Metadata.NodeName, Import: importOf(doc)}
	case doc.Server != nil:
		if err := p.addPersistent(ctx, doc, known); err != nil {
			return err
		}
		digest, err := p.pack(ctx, doc)
		if err != nil {
			return err
		}
		w.Server = &workflows.ProvisionServerIn{Metadata: doc.Metadata, Spec: *doc.Server, Bundle: digest}
		w.DependsOn = dependencies(doc)
	case doc.Playbook != nil:
		digest, err := p.pack(ctx, doc)
		if err != nil {
			return err
		}
		w.Playbook = &workflows.RunPlaybookIn{Metadata: doc.Metadata, Spec: *doc.Playbook, Bundle: digest}
		w.DependsOn = awaited(set, doc)
	}
	stands, err := p.decide(&w, doc, known)
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
func (p *plan) addPersistent(ctx context.Context, doc *manifest.Document, known manifest.Known) error {
	for i, s := range doc.Server.Storage {
		if s.Spec == nil || !s.Spec.Persistent {
			continue
		}
		vol := &manifest.Document{
			APIVersion: doc.APIVersion, Kind: manifest.KindVolume, File: doc.File, Line: doc.Line, Dir: doc.Dir,
			Metadata: manifest.Metadata{Name: s.Name, NodeName: doc.Metadata.NodeName}, Volume: s.Spec,
		}
		doc.Server.Storage[i].Spec = nil
		if err := p.add(ctx, nil, vol, known); err != nil {
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

// awaited are the documents a Playbook needs ready: its servers, and those it names.
func awaited(set *manifest.Set, doc *manifest.Document) []string {
	refs := slices.Clone(doc.Playbook.DependsOn)
	for _, other := range set.Documents {
		if other.Server != nil && doc.Playbook.Targets.Matches(other.Metadata.Name, other.Metadata.Labels) {
			refs = append(refs, other.Ref())
		}
	}
	slices.Sort(refs)
	return slices.Compact(refs)
}

// targets are the identities of the servers that a Playbook is for, as they stand. What
// this apply builds or changes has none yet.
func (p *plan) targets(doc *manifest.Document, known manifest.Known) []string {
	var all []string
	for _, rec := range known.Each(manifest.KindServer) {
		ref := manifest.Ref(rec.Kind, rec.Metadata.Name)
		planned := func(d workflows.Document) bool { return d.Ref == ref }
		if doc.Playbook.Targets.Matches(rec.Metadata.Name, rec.Metadata.Labels) && !slices.ContainsFunc(p.documents, planned) {
			all = append(all, manifest.TargetIdentity(rec))
		}
	}
	for _, d := range p.documents {
		if d.Server != nil && doc.Playbook.Targets.Matches(d.Server.Metadata.Name, d.Server.Metadata.Labels) {
			all = append(all, d.Ref)
		}
	}
	return all
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

// close lets the temporary archives and checkouts go.
func (p *plan) close() {
	for _, c := range p.checkouts {
		_ = os.RemoveAll(c.dir) // in the system's folder for what is temporary
	}
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
		case d.Playbook != nil:
			d.Playbook.RequestedBy = who
		case d.Update != nil:
			d.Update.RequestedBy = who
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

// decide compares a document with its resource. One that cannot become as declared is an
// error that names the fields and the place in the file. What an operation is changing
// just now is decided when that has ended.
func (p *plan) decide(w *workflows.Document, doc *manifest.Document, known manifest.Known) (stands bool, err error) {
	rec, ok := known.Lookup(doc.Kind, doc.Metadata.Name)
	if !ok || !rec.Status.Phase.Settled() {
		return false, nil
	}
	declared, err := w.Declared(p.restart)
	if err != nil {
		return false, err
	}
	if doc.Playbook != nil {
		declared.Targets = p.targets(doc, known)
	}
	decision, err := manifest.Decide(&rec, declared)
	if err == nil && decision.Change != nil {
		p.changes = append(p.changes, serverChange{Ref: w.Ref, Effects: decision.Change.Effects})
	}
	w.Follow(decision, p.restart)
	var own *errs.Error
	if errors.As(err, &own) {
		own.Object = fmt.Sprintf("%s:%d: %s", doc.File, doc.Line, doc.Ref())
		err = &ExitError{Code: ExitInvalid, Err: own}
	}
	return decision.Stands, err
}
