package image

// EnsureIn asks for a verified copy of an image in the host's pool.
type EnsureIn struct {
	Name string `json:"name"` // name in the image library
	Pool string `json:"pool,omitempty"`
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
