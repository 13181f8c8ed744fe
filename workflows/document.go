package workflows

import (
	"encoding/json"

	"burrow.dev/burrow/manifest"
)

// Declared is what the document says, whichever kind it is.
func (d *Document) Declared(restart bool) (manifest.Declared, error) {
	var spec any
	out := manifest.Declared{Kind: manifest.KindServer, Restart: restart}
	switch {
	case d.Network != nil:
		out.Kind, out.Metadata, spec = manifest.KindNetwork, d.Network.Metadata, d.Network.Spec
	case d.Volume != nil:
		out.Kind, out.Metadata, spec = manifest.KindVolume, d.Volume.Metadata, d.Volume.Spec
	case d.Image != nil:
		out.Kind, out.Metadata, spec = manifest.KindImage, d.Image.Metadata, d.Image.Spec
	case d.Playbook != nil:
		out.Kind, out.Metadata, spec, out.Bundle = manifest.KindPlaybook, d.Playbook.Metadata, d.Playbook.Spec, d.Playbook.Bundle
	case d.Update != nil:
		out.Metadata, spec, out.Bundle = d.Update.Metadata, d.Update.Spec, d.Update.Bundle
	default:
		out.Metadata, spec, out.Bundle = d.Server.Metadata, d.Server.Spec, d.Server.Bundle
	}
	var err error
	out.Spec, err = json.Marshal(spec)
	return out, err
}

// Follow makes the document do what was decided about it: build, or change.
func (d *Document) Follow(decision manifest.Decision, restart bool) {
	if d.Update != nil { // decided before, and now anew
		d.Server, d.Update = &d.Update.ProvisionServerIn, nil
	}
	if decision.Change != nil {
		d.Update, d.Server = &UpdateServerIn{ProvisionServerIn: *d.Server, Restart: restart}, nil
	}
}
