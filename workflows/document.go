package workflows

import (
	"encoding/json"
	"strings"

	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/manifest"
)

// declared is what the document says, whichever kind it is.
func (d *Document) declared() (kind manifest.Kind, meta manifest.Metadata, spec any) {
	switch {
	case d.Update != nil:
		return manifest.KindServer, d.Update.Metadata, d.Update.Spec
	case d.Network != nil:
		return manifest.KindNetwork, d.Network.Metadata, d.Network.Spec
	case d.Volume != nil:
		return manifest.KindVolume, d.Volume.Metadata, d.Volume.Spec
	case d.Image != nil:
		return manifest.KindImage, d.Image.Metadata, d.Image.Spec
	default:
		return manifest.KindServer, d.Server.Metadata, d.Server.Spec
	}
}

// Decide compares the document with its resource's record (nil: there is none). stands:
// it is as declared, and there is nothing to do. Otherwise the document builds it, or
// changes it in the smallest steps. What cannot be changed is the error.
func (d *Document) Decide(rec *manifest.Record, restart bool) (stands bool, change manifest.ServerChange, err error) {
	if d.Update != nil { // decided before, and now anew
		d.Server, d.Update = &d.Update.ProvisionServerIn, nil
	}
	if rec == nil || !rec.Status.Phase.Settled() && rec.Status.Phase != manifest.PhaseUpdating || rec.Status.Phase == manifest.PhaseFailed {
		return false, change, nil
	}
	kind, meta, spec := d.declared()
	if kind != manifest.KindServer {
		stands, err = same(rec, meta, spec)
		return stands, change, err
	}
	change, err = manifest.ChangeServer(*rec, meta, d.Server.Spec, d.Server.Bundle)
	if err == nil {
		err = change.Err(d.Ref)
	}
	if err != nil || change.Empty() {
		return err == nil, change, err
	}
	if err := change.NeedsRestart(d.Ref, restart || rec.Status.PowerOff); err != nil {
		return false, change, err
	}
	d.Update, d.Server = &UpdateServerIn{ProvisionServerIn: *d.Server, Restart: restart}, nil
	return false, change, nil
}

// same reports whether a resource that is no server is as declared; if not, it is refused
// with the fields' names.
func same(rec *manifest.Record, meta manifest.Metadata, spec any) (bool, error) {
	want, err := json.Marshal(spec)
	if err != nil {
		return false, err
	}
	changed, err := manifest.SpecDifferences(rec.Spec, want)
	if err != nil {
		return false, err
	}
	changed = append(changed, manifest.MetadataDifferences(rec.Metadata.Metadata, meta)...)
	if len(changed) == 0 {
		return true, nil
	}
	ref := manifest.Ref(rec.Kind, rec.Metadata.Name)
	return false, errs.NewPermanent(ref, "apply",
		errs.Reason("it stands, and differs in %s: of what is built, only servers can be changed", strings.Join(changed, ", ")),
		"undo the edit, or `burrow delete "+ref+"` and apply again")
}
