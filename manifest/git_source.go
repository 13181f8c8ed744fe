package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"unicode"
)

// GitSource is where a playbook comes from that is not beside the manifest.
type GitSource struct {
	URL string `json:"url"`
	Ref string `json:"ref,omitempty"` // a branch, a tag or a whole commit id; empty: the repository's HEAD
	// Commit is what Ref was when it was fetched. Users do not write it.
	Commit string `json:"commit,omitempty"`
}

// String names the source and, once fetched, the commit.
func (s GitSource) String() string {
	text := s.URL
	if s.Ref != "" {
		text += " " + s.Ref
	}
	if s.Commit != "" {
		text += " (" + s.Commit[:min(12, len(s.Commit))] + ")"
	}
	return text
}

// Edited is the source of a folder that was edited since it was fetched: of no commit.
func (s *GitSource) Edited() *GitSource {
	if s == nil {
		return nil
	}
	return &GitSource{URL: s.URL, Ref: s.Ref}
}

var (
	// scpLike is git's other way to write an ssh URL: git@host:path.
	scpLike = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]*@[A-Za-z0-9][A-Za-z0-9.-]*:[^-/:][^:]*$|^[A-Za-z0-9_][A-Za-z0-9_.-]*@[A-Za-z0-9][A-Za-z0-9.-]*:/[^:]*$`)
	// refPattern has no ":" and no "+", which would make a ref a refspec.
	refPattern = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_./@#-]*$`)
)

const writeGitURL = "write https://HOST/PATH, ssh://git@HOST/PATH, git@HOST:PATH, or file:///PATH"

// GitProtocol gives the one protocol that a repository's URL may use: https, ssh or file. Any
// other URL is refused, and so is one with a password: it would stand in records and
// histories. No error quotes the URL, which may have one in it.
func GitProtocol(address string) (string, error) {
	if strings.ContainsFunc(address, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }) {
		return "", errors.New("has characters that a URL cannot have")
	}
	if scpLike.MatchString(address) {
		return "ssh", nil
	}
	u, err := url.Parse(address)
	switch {
	case err != nil || u.Opaque != "":
		return "", errors.New("is not the URL of a git repository")
	case u.Scheme != "https" && u.Scheme != "ssh" && u.Scheme != "file":
		return "", errors.New("is not https, ssh or file")
	}
	_, password := u.User.Password()
	name := ""
	if u.User != nil {
		name = u.User.Username()
	}
	switch {
	case password || u.Scheme == "https" && u.User != nil:
		return "", errors.New("has a login in it, which would stand in records; let git's credential helper or an ssh key log in")
	case u.RawQuery != "" || u.Fragment != "":
		return "", errors.New("has a part after ? or #, which no repository's URL has")
	case u.Scheme == "file" && (u.Host != "" && u.Host != "localhost" || !filepath.IsAbs(u.Path)):
		return "", errors.New("is not the absolute path of a folder")
	case u.Scheme != "file" && (u.Hostname() == "" || strings.HasPrefix(u.Host, "-") || strings.HasPrefix(name, "-")):
		return "", errors.New("names no host")
	case strings.Trim(u.Path, "/") == "":
		return "", errors.New("names no repository")
	}
	return u.Scheme, nil
}

// GitRef refuses what cannot be a branch, a tag or a commit.
func GitRef(ref string) error {
	if !refPattern.MatchString(ref) || strings.Contains(ref, "..") || len(ref) > 250 {
		return errors.New("is no branch, tag or commit")
	}
	return nil
}

// gitSource brings a source into its normal form.
func (d *decoder) gitSource(path string, in *gitSourceInput) *GitSource {
	if in == nil {
		return nil
	}
	if d.doc.sound(path + ".url") {
		if _, err := GitProtocol(in.URL); err != nil {
			d.complainCut(path+".url", 1, err.Error(), writeGitURL)
		}
	}
	if in.Ref != "" && d.doc.sound(path+".ref") {
		if err := GitRef(in.Ref); err != nil {
			d.complain(path+".ref", quote(in.Ref)+" "+err.Error(), "write a branch, a tag, or a whole commit id")
		}
	}
	return &GitSource{URL: in.URL, Ref: in.Ref}
}

// repositoryPath cleans a path inside a repository.
func (d *decoder) repositoryPath(path string, file *string) {
	if !d.doc.sound(path) {
		return
	}
	*file = filepath.ToSlash(filepath.Clean(*file))
	if !filepath.IsLocal(*file) || strings.HasPrefix(*file, "-") || strings.ContainsAny(*file, "\x00\n") {
		d.complain(path, quote(*file)+" is not inside the repository", "name a file by its path from the repository's top")
	}
}

// sameButCommit reports whether two runs differ in nothing but the commit that their folder
// was fetched at.
func sameButCommit(a, b *Ansible) bool {
	if a == nil || b == nil || a.Source == nil || b.Source == nil || a.Source.Commit == b.Source.Commit {
		return false
	}
	one, other := *a, *b
	source := *b.Source
	source.Commit = a.Source.Commit
	other.Source = &source
	have, err1 := json.Marshal(one)
	want, err2 := json.Marshal(other)
	return err1 == nil && err2 == nil && bytes.Equal(have, want)
}
