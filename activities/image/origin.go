package image

import (
	"encoding/json"
	"fmt"
	"strings"

	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/internal/imagestore/catalogue"
	"burrow.dev/burrow/manifest"
)

// Schemes of an image's source that are no address on the network.
const (
	buildScheme = "build:"
	fileScheme  = "file://"
)

// origin is where an image comes from. One of Distro, File and URL is set.
type origin struct {
	Distro string
	File   string // absolute path on the host
	URL    string
	// Checksum and ChecksumURL are of the file as published.
	Checksum, ChecksumURL   string
	User, OSName, OSVersion string
}

// String gives the origin as records keep it: "build:debian12", "file:///srv/a.qcow2", a URL.
func (o origin) String() string {
	switch {
	case o.Distro != "":
		return buildScheme + o.Distro
	case o.File != "":
		return fileScheme + o.File
	}
	return o.URL
}

// recordOrigin reads an origin back from a record.
func recordOrigin(rec manifest.Record) (origin, error) {
	var spec manifest.ImageSpec
	if err := json.Unmarshal(rec.Spec, &spec); err != nil {
		return origin{}, errs.NewPermanent(manifest.Ref(manifest.KindImage, rec.Metadata.Name), "read record", fmt.Errorf("%w: %w", errs.ErrInvalid, err), "")
	}
	o := origin{Checksum: spec.SHA256, ChecksumURL: spec.ChecksumURL, User: spec.User, OSName: spec.OSName, OSVersion: spec.OSVersion}
	if distro, ok := strings.CutPrefix(spec.SourceURL, buildScheme); ok {
		o.Distro = distro
	} else if file, ok := strings.CutPrefix(spec.SourceURL, "file:"); ok {
		o.File = strings.TrimPrefix(file, "//")
	} else {
		o.URL = spec.SourceURL
	}
	return o, nil
}

// catalogueOrigin is the origin of an image that ships in the catalogue.
func catalogueOrigin(e catalogue.Entry) origin {
	return origin{URL: e.URL, ChecksumURL: e.ChecksumURL, User: e.User, OSName: e.OSName, OSVersion: e.OSVersion}
}

// spec is what a record says of the origin.
func (o origin) spec() manifest.ImageSpec {
	return manifest.ImageSpec{
		SourceURL: o.String(), SHA256: o.Checksum, ChecksumURL: o.ChecksumURL,
		User: o.User, OSName: o.OSName, OSVersion: o.OSVersion,
	}
}
