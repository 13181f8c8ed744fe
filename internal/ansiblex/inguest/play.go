package inguest

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"path"
	"regexp"
	"strings"

	"burrow.dev/burrow/internal/ansiblex"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/manifest"
	"burrow.dev/burrow/playbook"
)

const (
	// Root is the folder of runs in a guest.
	Root = "/var/lib/burrow-play"
	// MaxArchive bounds the folder of a playbook, packed, that goes into a guest: it stands in
	// the seed, in base64, beside all else.
	MaxArchive = 512 << 10
	// retryPause, in seconds, lets what a task or a download stumbled over pass.
	retryPause = 2
)

//go:embed run.sh
var runner []byte

// Play is a run inside a guest.
type Play struct {
	// Key names the run in the guest: letters, digits and dashes.
	Key string
	// Spec says what runs. Secrets that it names are refused.
	Spec manifest.Ansible
	// Host is the server as the playbook's inventory knows it.
	Host ansiblex.Host
	// Archive is the playbook's folder as tar, gzipped; nil when it is pulled.
	Archive []byte
}

// File is one of a run's files in the guest; only root reads them.
type File struct {
	Path    string // absolute
	Mode    uint32
	Content []byte
}

var keyPattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9-]{0,99}$`)

// Dir is the run's folder in the guest.
func (p Play) Dir() string { return path.Join(Root, p.Key) }

// Command is what a run is told in the guest: "start", "stop", or "read" with its arguments.
func (p Play) Command(verb ...string) []string {
	return append([]string{"/bin/sh", path.Join(p.Dir(), "run")}, verb...)
}

// Files gives what the run needs in the guest. Permanent: it cannot run there.
func (p Play) Files() ([]File, error) {
	object := "server/" + p.Host.Name
	refuse := func(format string, args ...any) ([]File, error) {
		return nil, errs.NewPermanent(object, "run playbook in the guest", errs.Reason(format, args...), "")
	}
	switch {
	case !keyPattern.MatchString(p.Key):
		return refuse("%w: %q names no run", errs.ErrInvalid, p.Key)
	case len(p.Spec.Playbook) != 1:
		return refuse("%w: it takes one playbook", errs.ErrInvalid)
	case len(p.Spec.SecretNames()) > 0:
		return refuse("%w: secrets are not given to a run in the guest", errs.ErrInvalid)
	case len(p.Archive) > MaxArchive:
		return refuse("%w: its folder has %d KiB, packed, and at most %d go into a guest; leave files out by .burrowignore, or use pull",
			errs.ErrInvalid, len(p.Archive)>>10, MaxArchive>>10)
	}
	inventory, err := ansiblex.LocalInventory(p.Host)
	if err != nil {
		return nil, err
	}
	vars, err := variables(p.Spec.ExtraVars)
	if err != nil {
		return refuse("spec.ansible.extraVars: %w", err)
	}
	files := []File{
		{"run", 0o700, runner},
		{"run.conf", 0o600, p.conf()},
		{"inventory.yaml", 0o600, inventory},
		{"vars.json", 0o600, vars},
		{"plugins/burrow.py", 0o600, playbook.CallbackPlugin()},
	}
	if p.Spec.Pull == nil {
		files = append(files, File{"content.tar.gz", 0o600, p.Archive})
	}
	for i := range files {
		files[i].Path = path.Join(p.Dir(), files[i].Path)
	}
	return files, nil
}

// conf is what the runner reads: shell, in which all that is a user's is quoted.
func (p Play) conf() []byte {
	url := ""
	if p.Spec.Pull != nil {
		url = p.Spec.Pull.URL
	}
	args := append([]string{"ansible-playbook"}, p.Spec.ExtraArgs...)
	if len(p.Spec.Tags) > 0 {
		args = append(args, "--tags", strings.Join(p.Spec.Tags, ","))
	}
	if len(p.Spec.SkipTags) > 0 {
		args = append(args, "--skip-tags", strings.Join(p.Spec.SkipTags, ","))
	}
	for i, arg := range args {
		args[i] = quoted(arg)
	}
	// Ours are the last: of an option given twice, Ansible takes that.
	args = append(args, `--inventory "$dir/inventory.yaml" --extra-vars "@$dir/vars.json"`)
	return fmt.Appendf(nil, "url=%s\nplaybook=%s\nretries=%d\npause=%d\nplay() { %s \"$playbook\"; }\n",
		quoted(url), quoted(p.Spec.Playbook[0]), p.Spec.Retries, retryPause, strings.Join(args, " "))
}

// quoted is a word that a POSIX shell takes as it is.
func quoted(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// variables is a mapping, also where there are none.
func variables(vars map[string]any) ([]byte, error) {
	if vars == nil {
		vars = map[string]any{}
	}
	return json.Marshal(vars)
}
