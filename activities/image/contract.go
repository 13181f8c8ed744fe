package image

import "fmt"

// EnsureIn asks for a verified copy of an image in the host's pool.
type EnsureIn struct {
	Name string `json:"name"` // name in the image library
}

// EnsureOut is the image volume in the pool, complete and verified.
// The record is read from etcd; absent and in the catalogue → imported (downloaded) first.
type EnsureOut struct {
	Pool       string `json:"pool"`
	Volume     string `json:"volume"` // "img-<sha256[:16]>.qcow2"
	Path       string `json:"path"`
	Format     string `json:"format"`
	SHA256     string `json:"sha256"`
	VirtualGiB int    `json:"virtualGiB"` // rounded up
	User       string `json:"user"`
}

// ImportIn imports an image by URL or by file on the host. Part file, resume by Range,
// size, sha256, fsync, rename; HTML or a truncated file → Permanent.
type ImportIn struct {
	Name        string `json:"name"`
	URL         string `json:"url,omitempty"`
	File        string `json:"file,omitempty"` // absolute path on the host
	SHA256      string `json:"sha256,omitempty"`
	ChecksumURL string `json:"checksumUrl,omitempty"`
	User        string `json:"user,omitempty"`
	OSName      string `json:"osName,omitempty"`
	OSVersion   string `json:"osVersion,omitempty"`
}

// BuildIn builds an image from the distribution's packages ("debian12").
type BuildIn struct {
	Name   string `json:"name"`
	Distro string `json:"distro"`
}

// Out describes the image volume that stands in the pool.
type Out struct {
	Volume     string `json:"volume"`
	SHA256     string `json:"sha256"`
	SizeBytes  int64  `json:"sizeBytes"`
	VirtualGiB int    `json:"virtualGiB"`
	Format     string `json:"format"`
	User       string `json:"user"`
	OSName     string `json:"osName"`
	OSVersion  string `json:"osVersion"`
	Source     string `json:"source"`
}

// RemoveIn deletes an image's volume. A disk whose backing chain needs it → Permanent, named.
type RemoveIn struct {
	Name   string `json:"name"`
	SHA256 string `json:"sha256"`
}

// Progress is the heartbeat detail of an image that is on its way.
type Progress struct {
	Stage string `json:"stage"`           // "download", "verify", "convert", "packages", …
	Done  int64  `json:"done,omitempty"`  // bytes
	Total int64  `json:"total,omitempty"` // bytes; 0: not known
}

// String says it for people: "download 120 of 350 MiB".
func (p Progress) String() string {
	const mib = 1 << 20
	switch {
	case p.Total > 0:
		return fmt.Sprintf("%s %d of %d MiB", p.Stage, p.Done/mib, p.Total/mib)
	case p.Done > 0:
		return fmt.Sprintf("%s %d MiB", p.Stage, p.Done/mib)
	}
	return p.Stage
}
