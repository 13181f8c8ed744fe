package manifest

import (
	"fmt"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
)

var (
	sha256Pattern = regexp.MustCompile(`^[0-9a-f]{64}$`)
	// loginPattern is what useradd takes.
	loginPattern = regexp.MustCompile(`^[a-z_][a-z0-9_-]{0,31}$`)
)

// image brings an Image's spec into its normal form.
func (d *decoder) image(in imageInput) *ImageSpec {
	spec := &ImageSpec{
		SourceURL: in.SourceURL, SHA256: strings.ToLower(in.SHA256), ChecksumURL: in.ChecksumURL,
		Format: in.Format, User: in.User, OSName: in.OSName, OSVersion: in.OSVersion,
	}
	if in.SourceURL != "" {
		spec.SourceURL = d.imageSource(in.SourceURL)
	}
	if in.ChecksumURL != "" {
		d.httpURL("spec.checksumUrl", in.ChecksumURL)
	}
	if in.SHA256 != "" && !sha256Pattern.MatchString(spec.SHA256) {
		d.complain("spec.sha256", quote(in.SHA256)+" is not a SHA-256 sum", "write its 64 hex digits")
	}
	if in.SHA256 != "" && in.ChecksumURL != "" {
		d.complain("spec.checksumUrl", "sha256 and checksumUrl exclude each other", "remove one of them")
	}
	if in.User != "" {
		d.login("spec.user", in.User)
	}
	return spec
}

// imageSource gives the URL, or, for a file beside the manifest, its absolute path as file:PATH.
func (d *decoder) imageSource(text string) string {
	path, local := strings.CutPrefix(text, "file:")
	if !local {
		d.httpURL("spec.sourceUrl", text)
		return text
	}
	if strings.HasPrefix(path, "//") {
		path = "/" + strings.TrimLeft(path, "/")
	}
	if d.localPath("spec.sourceUrl", &path); !d.doc.sound("spec.sourceUrl") {
		return text
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(d.doc.Dir, path)
	}
	return "file:" + path
}

func (d *decoder) httpURL(path, text string) {
	if !d.doc.sound(path) {
		return
	}
	address, err := url.Parse(text)
	switch {
	case err != nil || address.Host == "" || address.Scheme != "https" && address.Scheme != "http":
		d.complainCut(path, shownCharacters, quote(clip(text, shownCharacters))+" is not an http(s) URL", "write https://HOST/PATH")
	case address.User != nil:
		d.complainCut(path, -1, "a URL with a user or password in it", "remove it; etcd and the log would keep it")
	}
}

func (d *decoder) login(path, name string) {
	if d.doc.sound(path) && !loginPattern.MatchString(name) {
		d.complain(path, quote(name)+" is not a login name", "use lower-case letters, digits, '_' and '-', at most 32")
	}
}

// CheckLogin says what is wrong with the name of a login user.
func CheckLogin(name string) error {
	if !loginPattern.MatchString(name) {
		return fmt.Errorf("%s is not a login name: lower case letters, digits, '_' and '-', at most 32", quote(name))
	}
	return nil
}
