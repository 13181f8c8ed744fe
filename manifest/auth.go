package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"unicode"

	"github.com/go-crypt/crypt/algorithm"
	"github.com/go-crypt/crypt/algorithm/shacrypt"
	"golang.org/x/crypto/ssh"
)

// passwordRounds makes guessing a root password dear and a login still instant.
const passwordRounds = 100_000

var (
	// forges are the short forms of key URLs.
	forges         = map[string]string{"github:": "https://github.com/", "gitlab:": "https://gitlab.com/"}
	accountPattern = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]{0,253}[A-Za-z0-9])?$`)
	// cryptPattern is a crypt(3) hash of a method that today's distributions take:
	// SHA-256, SHA-512, yescrypt, bcrypt.
	cryptPattern = regexp.MustCompile(`^\$(5|6|y|2[aby])\$[A-Za-z0-9./=,$]{10,200}$`)
)

// auth brings who may log in into its normal form.
func (d *decoder) auth(in authInput) Auth {
	auth := Auth{Users: in.Users}
	for i, text := range in.URL {
		if address := d.keyURL(d.doc.element("spec.auth.url", i), text); address != "" {
			auth.URL = append(auth.URL, address)
		}
	}
	for i, text := range in.PublicKey {
		auth.PublicKey = append(auth.PublicKey, d.publicKey(d.doc.element("spec.auth.publicKey", i), text)...)
	}
	if in.User != nil {
		auth.Users = []string{*in.User}
		d.login("spec.auth.user", *in.User)
	}
	if in.User != nil && in.Users != nil {
		d.complain("spec.auth.user", "auth.user and auth.users exclude each other", "remove one of them")
	}
	for i, user := range in.Users {
		d.login(d.doc.element("spec.auth.users", i), user)
	}
	auth.RootPassword = d.rootPassword(in.RootPassword)
	return auth
}

// keyURL expands short forms; keys decide who gets in, so the way to them must be https.
func (d *decoder) keyURL(path, text string) string {
	if !d.doc.sound(path) {
		return ""
	}
	for short, base := range forges {
		if user, ok := strings.CutPrefix(text, short); ok {
			if !accountPattern.MatchString(user) {
				d.complain(path, quote(user)+" is not an account's name", "write "+short+"USER")
				return ""
			}
			return base + user + ".keys"
		}
	}
	if strings.HasPrefix(text, "http://") && !d.opts.AllowHTTP {
		d.complainCut(path, len("http://"), "keys are not fetched over http, where anybody on the way can put theirs in", "use https")
		return ""
	}
	address, err := url.Parse(text)
	if err == nil && address.Scheme == "" {
		d.complain(path, quote(clip(text, shownCharacters))+" is not a URL", "write https://HOST/PATH, github:USER or gitlab:USER")
		return ""
	}
	d.httpURL(path, text)
	return text
}

// publicKey gives the authorized_keys lines of one entry, each of them parsed.
func (d *decoder) publicKey(path, text string) []string {
	if !d.doc.sound(path) {
		return nil
	}
	file, fromFile := strings.CutPrefix(text, "file:")
	if fromFile {
		data, err := d.readBeside(file)
		if err != nil {
			d.complain(path, fmt.Sprintf("read %s: %v", quote(file), err), "name a file of public keys beside the manifest")
			return nil
		}
		text = string(data)
	}
	var keys []string
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if err := checkKey(line); err != nil {
			d.complainCut(path, shownCharacters, err.Error(), "paste the whole line of the .pub file")
			return nil
		}
		keys = append(keys, line)
	}
	if len(keys) == 0 {
		d.complain(path, "no public key in it", "paste the whole line of the .pub file")
	}
	return keys
}

// checkKey parses a key. The message shows at most its beginning: it may be anything,
// a private key too.
func checkKey(line string) error {
	_, _, _, rest, err := ssh.ParseAuthorizedKey([]byte(line))
	if err != nil || len(bytes.TrimSpace(rest)) > 0 {
		return fmt.Errorf("not an SSH public key (%q)", clip(line, shownCharacters))
	}
	return nil
}

// readBeside reads a file that a manifest names, relative to the manifest.
func (d *decoder) readBeside(name string) ([]byte, error) {
	if d.doc.Dir == "" {
		return nil, errors.New("the manifest came from a URL, so no file can be read beside it")
	}
	if home, err := os.UserHomeDir(); err == nil && strings.HasPrefix(name, "~/") {
		name = filepath.Join(home, name[2:])
	}
	if !filepath.IsAbs(name) {
		name = filepath.Join(d.doc.Dir, name)
	}
	info, err := os.Stat(name)
	if err != nil {
		return nil, pathError(err)
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("not a regular file")
	}
	file, err := os.Open(name)
	if err != nil {
		return nil, pathError(err)
	}
	defer file.Close()
	return readBounded(file, MaxInlineFileBytes)
}

// rootPassword keeps a hash or a reference, and hashes clear text, with a warning.
func (d *decoder) rootPassword(text string) string {
	const path = "spec.auth.rootPassword"
	switch {
	case text == "" || !d.doc.sound(path):
		return ""
	case strings.HasPrefix(text, SecretPrefix):
		d.secretName(path, text)
		return text
	case IsCryptHash(text):
		return text
	case strings.HasPrefix(text, "$"):
		d.complainCut(path, -1, "looks like a password hash, but of no method that is known", "make one with `mkpasswd -m sha-512`")
		return ""
	}
	where := d.doc.where(path)
	d.out.warn(d.name, issue{
		at: where.at, path: where.path, cut: -1, message: "is in clear text; its hash is used",
		next: "`burrow secret set NAME`, and write secret:NAME; or write the output of `mkpasswd -m sha-512`",
	})
	hash, err := d.hash(text)
	if err != nil {
		d.complainCut(path, -1, "could not be hashed: "+err.Error(), "write the output of `mkpasswd -m sha-512`")
	}
	return hash
}

// hash gives the SHA-512 crypt of a password: the one that the server has already if
// that is of the same password, so that applying again changes nothing.
func (d *decoder) hash(password string) (string, error) {
	if known := d.knownHash(); known != "" {
		if old, err := shacrypt.Decode(known); err == nil && old.Match(password) {
			return known, nil
		}
	}
	return HashPassword(password, "")
}

// IsCryptHash reports whether text is a crypt(3) hash of a method that guests take.
func IsCryptHash(text string) bool { return cryptPattern.MatchString(text) }

// HashPassword gives the SHA-512 crypt of a password in clear; salt "" is a random one. What
// nobody could type at a login, and what looks like a damaged hash, is errors that do not
// quote it.
func HashPassword(password, salt string) (string, error) {
	switch {
	case password == "":
		return "", errors.New("it is empty")
	case strings.ContainsFunc(password, unicode.IsControl):
		return "", errors.New("a password is one line, without control characters")
	case strings.HasPrefix(password, "$"):
		return "", errors.New("looks like a password hash, but of no method that is known")
	}
	hasher, err := shacrypt.New(shacrypt.WithSHA512(), shacrypt.WithIterations(passwordRounds))
	if err != nil {
		return "", err
	}
	var made algorithm.Digest
	if salt == "" {
		made, err = hasher.Hash(password)
	} else {
		made, err = hasher.HashWithSalt(password, []byte(salt))
	}
	if err != nil {
		return "", err
	}
	return made.Encode(), nil
}
