package gitrepo

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"burrow.dev/burrow/internal/plaintext"
)

const (
	// endsWithin is how long git's own children may hold its output open after it was killed.
	endsWithin = 2 * time.Second
	// maxMessage bounds what is quoted of git.
	maxMessage = 1000
	// maxOutput bounds what is kept of what git says is wrong; a remote may add to it.
	maxOutput = 64 << 10
)

// git runs the program in one repository.
type git struct {
	program, dir, protocol string
	out                    io.Writer
	most                   bounds
}

// to is g with its output going to w.
func (g *git) to(w io.Writer) *git {
	other := *g
	other.out = w
	return &other
}

// settings keep what is fetched from being run or changed, and in one pack, which is measured.
var settings = []string{
	"core.hooksPath=/dev/null", "core.fsmonitor=false", "submodule.recurse=false", "core.fileMode=true", "core.symlinks=true",
	"fetch.unpackLimit=1", "gc.auto=0", "maintenance.auto=false", "advice.detachedHead=false", "credential.interactive=never",
}

// attributes have precedence over those of the repository and of the user: files come as
// they are in it, so that the same commit gives the same bundle on every machine, and no
// filter of the user's configuration is run on somebody else's files.
const attributes = "* -text -eol -filter -ident -working-tree-encoding\n"

func (g *git) writeAttributes() error {
	info := filepath.Join(g.dir, ".git", "info")
	if err := os.MkdirAll(info, 0o700); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(info, "attributes"), []byte(attributes), 0o600)
}

// inherited are the variables that would lead git to another repository (we may be run by one
// of its hooks), or let something ask.
var inherited = []string{
	"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES",
	"GIT_COMMON_DIR", "GIT_NAMESPACE", "GIT_PREFIX", "GIT_GRAFT_FILE", "GIT_SHALLOW_FILE", "GIT_CEILING_DIRECTORIES",
	"GIT_ALLOW_PROTOCOL", "GIT_ASKPASS", "SSH_ASKPASS", "GIT_TERMINAL_PROMPT", "GIT_TEMPLATE_DIR", "GIT_EXTERNAL_DIFF",
	"GIT_PROTOCOL_FROM_USER", "GIT_ATTR_SOURCE", "LC_ALL", "LANGUAGE",
}

func (g *git) environment() []string {
	env := slices.DeleteFunc(os.Environ(), func(pair string) bool {
		name, _, _ := strings.Cut(pair, "=")
		return slices.Contains(inherited, name)
	})
	return append(env, "GIT_ALLOW_PROTOCOL="+g.protocols(), "GIT_TERMINAL_PROMPT=0", "GIT_ASKPASS=", "SSH_ASKPASS_REQUIRE=never",
		"GCM_INTERACTIVE=never",
		// A repository on this machine whose objects are elsewhere could say by which command to get them.
		"GIT_NO_LAZY_FETCH=1",
		"LC_ALL=C")
}

// protocols are those that git may speak. Users have "insteadOf" settings that turn https into
// ssh; a server cannot: a redirect stays within https.
func (g *git) protocols() string {
	if g.protocol == "https" {
		return "https:ssh"
	}
	return g.protocol
}

// run runs git; its error is what git said last.
func (g *git) run(ctx context.Context, args ...string) error {
	var all []string
	for _, s := range settings {
		all = append(all, "-c", s)
	}
	cmd := exec.CommandContext(ctx, g.program, append(all, args...)...)
	cmd.Dir, cmd.Env = g.dir, g.environment()
	// A session of its own has no terminal that git or ssh could ask on, and is one group to kill.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = endsWithin
	said := &words{}
	cmd.Stdout, cmd.Stderr = g.out, said
	err := cmd.Run()
	if err == nil {
		return nil
	}
	if text := said.text(); text != "" {
		return errors.New(text)
	}
	return err
}

// words keeps the beginning of what git says. The buffer is not embedded: io.Copy would use
// its ReadFrom, which knows no bound.
type words struct{ kept bytes.Buffer }

func (w *words) Write(p []byte) (int, error) {
	w.kept.Write(p[:min(len(p), maxOutput-w.kept.Len())])
	return len(p), nil
}

func (w *words) text() string { return said(w.kept.String()) }

// loginPattern is the login in a URL, up to the last @ before the path.
var loginPattern = regexp.MustCompile(`://[^/\s]*@`)

// said is what git says is wrong, on one line: its own configuration may put a login into a
// URL, which stays out of it.
func said(text string) string {
	text = plaintext.Text(loginPattern.ReplaceAllString(text, "://"), maxMessage)
	var lines []string
	for line := range strings.Lines(text) {
		line = strings.TrimPrefix(strings.TrimPrefix(strings.TrimSpace(line), "fatal: "), "error: ")
		if line != "" {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "; ")
}
