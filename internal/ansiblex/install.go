package ansiblex

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"

	"github.com/apenella/go-ansible/v2/pkg/execute"
	collection "github.com/apenella/go-ansible/v2/pkg/galaxy/collection/install"
	role "github.com/apenella/go-ansible/v2/pkg/galaxy/role/install"

	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/internal/galaxy"
	"burrow.dev/burrow/internal/plaintext"
)

const galaxyProgram = "ansible-galaxy"

// Install fetches what the play's requirements file names into a folder of the run, as the
// run's user and in its environment, and gives that folder when nothing writes there any more.
//
// Transient: a server could not be reached. Permanent: there is no such role, collection or
// version, as ansible-galaxy says. When ctx ends, the error is ctx's.
func (p *Prepared) Install(ctx context.Context, log *Log) (dir string, err error) {
	if _, err := exec.LookPath(galaxyProgram); err != nil {
		return "", errs.NewOperator(galaxyProgram, "find", err, "install the package ansible-core")
	}
	dir = p.folder.Path(galaxyDir)
	file := p.play.Requirements
	if p.needs.Has(galaxy.Role) {
		cmd := role.NewAnsibleGalaxyRoleInstallCmd(role.WithBinary(galaxyProgram), role.WithGalaxyRoleInstallOptions(
			&role.AnsibleGalaxyRoleInstallOptions{RoleFile: file, RolesPath: p.folder.Path(galaxyDir, rolesDir)}))
		if err := p.runGalaxy(ctx, log, cmd); err != nil {
			return "", err
		}
	}
	if p.needs.Has(galaxy.Collection) {
		cmd := collection.NewAnsibleGalaxyCollectionInstallCmd(collection.WithBinary(galaxyProgram), collection.WithGalaxyCollectionInstallOptions(
			&collection.AnsibleGalaxyCollectionInstallOptions{RequirementsFile: file, CollectionsPath: p.folder.Path(galaxyDir, collectionsDir)}))
		if err := p.runGalaxy(ctx, log, cmd); err != nil {
			return "", err
		}
	}
	// Nothing of this run is alive; what else runs as the same user may not enter any more.
	return dir, errors.Join(os.Chown(dir, keeper(), -1), os.Chmod(dir, 0o700))
}

// runGalaxy runs one command of ansible-galaxy to its end.
func (p *Prepared) runGalaxy(ctx context.Context, log *Log, cmd execute.Commander) error {
	l := p.folder.launcher(p.folder.galaxyEnvironment(p.cfgPath))
	out, errOut := newStream(log), newStream(log)
	err := l.execute(ctx, cmd, out, errOut)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		return fmt.Errorf("start %s: %w", galaxyProgram, err)
	}
	code, signalled, err := l.process.result()
	switch {
	case err != nil:
		return fmt.Errorf("wait for %s: %w", galaxyProgram, err)
	case signalled:
		return errs.NewTransient(galaxyProgram, "run", errs.Reason("it was killed (out of memory?)"))
	case code == 0:
		return nil
	}
	return installError(p.folder.hidePaths(string(errOut.last.text)), code)
}

// galaxyEnvironment is that of ansible-galaxy, and of the git that it starts: nothing asks.
func (f *Folder) galaxyEnvironment(cfgPath string) []string {
	env := f.base(cfgPath)
	env["ANSIBLE_COLLECTIONS_PATH"] = f.Path(galaxyDir, collectionsDir)
	env["GIT_TERMINAL_PROMPT"], env["GIT_ASKPASS"] = "0", ""
	env["GIT_SSH_COMMAND"] = "ssh -o BatchMode=yes"
	return pairs(env)
}

var (
	// unreachable is what the network, or a server in trouble, is called by Python, curl, ssh and git.
	unreachable = regexp.MustCompile(`(?i)name or service not known|failure in name resolution|could not resolve host|connection refused|` +
		`couldn't connect|failed to connect|connection (was )?(reset|closed|aborted)|timed? ?out|network is unreachable|no route to host|` +
		`unexpected disconnect|early eof|remote end closed|incompleteread|(code|error):? ?(429|5\d\d)\b|too many requests`)
	full = regexp.MustCompile(`(?i)no space left on device|disk quota exceeded`)
	// begins starts what is said of one thing; ansible-galaxy wraps lines at 79 characters.
	begins = regexp.MustCompile(`^(\[WARNING\]: |\[ERROR\]: |ERROR! |fatal: |error: )`)
	// wordy is what of it tells a person nothing.
	wordy = regexp.MustCompile(`failed in directory .*?\(rc=\d+\) -|- command \S*/git `)
)

// boring begins what ansible-galaxy says besides what is wrong.
var boring = []string{"you can use --ignore-errors", "The specified collections path", "Skipping Galaxy server", "Could not read from remote repository"}

// installError classifies what ansible-galaxy says when it gives up.
func installError(text string, code int) error {
	said := galaxySays(text)
	if said == "" {
		said = fmt.Sprintf("%s ended with %d and no message", galaxyProgram, code)
	}
	flat := strings.Join(strings.Fields(text), " ")
	switch {
	case full.MatchString(flat):
		return errs.NewOperator(galaxyProgram, "install", errs.Reason("%s", said), "make room")
	case unreachable.MatchString(flat):
		return errs.NewTransient(galaxyProgram, "install", errs.Reason("a server that it fetches from cannot be reached: %s", said))
	}
	return errs.NewPermanent(galaxyProgram, "install", errs.Reason("%s", said), "")
}

// galaxySays is what is wrong, on one line.
func galaxySays(text string) string {
	var parts []string
	wanted := false
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if mark := begins.FindString(line); mark != "" {
			if strings.HasPrefix(mark, "[") || strings.HasPrefix(mark, "E") {
				line = strings.TrimPrefix(line, mark)
			}
			line = strings.TrimPrefix(line, "- ")
			parts, wanted = append(parts, line), true
			continue
		}
		if line == "" {
			wanted = false
		}
		if wanted {
			parts[len(parts)-1] += " " + line
		}
	}
	var kept []string
	for _, part := range parts {
		part = strings.Join(strings.Fields(wordy.ReplaceAllString(part, "")), " ")
		dull := func(start string) bool { return strings.HasPrefix(part, start) }
		if part != "" && !slices.ContainsFunc(boring, dull) {
			kept = append(kept, part)
		}
	}
	return plaintext.Line(strings.Join(kept, "; "), maxMessage/2)
}
