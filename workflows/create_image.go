package workflows

import (
	"go.temporal.io/sdk/workflow"

	"burrow.dev/burrow/activities"
	"burrow.dev/burrow/activities/image"
	"burrow.dev/burrow/activities/place"
	"burrow.dev/burrow/activities/state"
	"burrow.dev/burrow/manifest"
)

// CreateImage brings an image into the library: imported, or built from a distribution's
// packages, verified, and kept in a host's pool.
func CreateImage(ctx workflow.Context, in CreateImageIn) (manifest.Record, error) {
	c := &imaging{in: in}
	body := sequence{
		step{stepRecord, c.record},
		step{stepPlace, c.place},
		step{"bring image", c.bring},
		step{stepFinish, func(ctx workflow.Context) error { return c.finishRecord(ctx, manifest.KindImage, c.rec) }},
	}
	op, err := begin(ctx, NameCreateImage, "image/"+in.Metadata.Name, manifest.PhaseProvisioning, body)
	if err != nil {
		return c.rec, err
	}
	c.operation = op
	describe(ctx, op, "", in.RequestedBy, searchImage.ValueSet(in.Metadata.Name))
	if err := op.run(ctx, body); err != nil {
		return c.rec, op.endRecord(ctx, manifest.KindImage, in.Metadata.Name, c.rec.Metadata.UID, err)
	}
	op.phase(ctx, manifest.PhaseReady)
	return c.rec, nil
}

// imaging carries the image's record and host.
type imaging struct {
	*operation
	in   CreateImageIn
	rec  manifest.Record
	host string
}

func (c *imaging) record(ctx workflow.Context) (err error) {
	spec := c.spec()
	c.rec, err = c.beginRecord(ctx, state.BeginIn{
		Kind: manifest.KindImage, Metadata: c.in.Metadata, Phase: manifest.PhaseProvisioning, RequestedBy: c.in.RequestedBy,
	}, spec)
	return err
}

// spec is the document's, or what a document would say.
func (c *imaging) spec() manifest.ImageSpec {
	switch {
	case c.in.Spec != nil:
		return *c.in.Spec
	case c.in.Build != nil:
		return manifest.ImageSpec{SourceURL: "build:" + c.in.Build.Distro}
	}
	from := c.in.Import
	spec := manifest.ImageSpec{
		SourceURL: from.URL, SHA256: from.SHA256, ChecksumURL: from.ChecksumURL,
		User: from.User, OSName: from.OSName, OSVersion: from.OSVersion,
	}
	if spec.SourceURL == "" {
		spec.SourceURL = "file:" + from.File
	}
	return spec
}

// place asks for a live host and gives its reservation back at once: images are a cache,
// and what they take is checked against the pool's real free space.
func (c *imaging) place(ctx workflow.Context) error {
	c.add(stepPlace, c.unplace)
	out, err := call[place.Out](ctx, c.operation, onControl(quickTimeout), activities.PlacePlace,
		place.In{Owner: "image/" + c.in.Metadata.Name, UID: c.rec.Metadata.UID, NodeName: c.in.Host})
	if err != nil {
		return err
	}
	c.host = out.Host
	c.detail(ctx, stepPlace, "on %s", c.host)
	return c.unplace(ctx)
}

func (c *imaging) unplace(ctx workflow.Context) error {
	_, err := call[activities.Nothing](ctx, c.operation, onControl(quickTimeout), activities.PlaceRelease,
		place.ReleaseIn{UID: c.rec.Metadata.UID})
	return err
}

func (c *imaging) bring(ctx workflow.Context) (err error) {
	var out image.Out
	at := onHost(c.host, imageTimeout)
	if c.in.Build != nil {
		c.detail(ctx, "bring image", "built from the packages of %s", c.in.Build.Distro)
		out, err = call[image.Out](ctx, c.operation, at, activities.ImageBuild, *c.in.Build)
	} else {
		c.detail(ctx, "bring image", "%s%s", c.in.Import.URL, c.in.Import.File)
		out, err = call[image.Out](ctx, c.operation, at, activities.ImageImport, *c.in.Import)
	}
	if err != nil {
		return err
	}
	c.rec.Status = manifest.Status{
		Phase: manifest.PhaseReady, Host: c.host, ObservedGeneration: c.rec.Metadata.Generation,
		Image: &manifest.ImageStatus{
			SHA256: out.SHA256, SizeBytes: out.SizeBytes, VirtualGiB: out.VirtualGiB, Format: out.Format,
			User: out.User, OSName: out.OSName, OSVersion: out.OSVersion, Source: out.Source, Hosts: []string{c.host},
		},
	}
	return nil
}
