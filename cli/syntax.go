package cli

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"time"

	ucli "github.com/urfave/cli/v2"

	"burrow.dev/burrow/internal/ansiblex"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/manifest"
)

// syntaxTimeout bounds the check of one playbook: it parses files, and may start an
// inventory script, for which somebody waits at a shell.
const syntaxTimeout = time.Minute

// checkPlaybooks has Ansible parse the playbooks of documents without problems, as a
// build does before its first step. What cannot be checked here is a warning.
func checkPlaybooks(c *ucli.Context, set *manifest.Set, found ...manifest.Problem) (problems manifest.Problems, err error) {
	var warnings manifest.Problems
	checked := map[string]error{} // servers are often many, and their playbook one
	for _, doc := range set.Documents {
		a, path := doc.Ansible()
		if a == nil || a.Pull != nil || slices.ContainsFunc(found, func(p manifest.Problem) bool { return p.Object == doc.Ref() }) {
			continue
		}
		needs, err := needsOf(doc, *a)
		if err != nil {
			problems = append(problems, doc.Problem(path+".requirements", err.Error(), ""))
			continue
		}
		warnings = append(warnings, unpinned(doc, path, needs)...)
		err = checkPlaybook(c.Context, doc, *a, needs, checked)
		switch {
		case c.Context.Err() != nil:
			return nil, c.Context.Err()
		case err != nil && errs.ClassOf(err) == errs.Permanent:
			problems = append(problems, doc.Problem(playbookField(*a, path), err.Error(), ""))
		case err != nil:
			warnings = append(warnings, doc.Problem(playbookField(*a, path), "its syntax was not checked: "+err.Error(),
				"a build checks it before anything else"))
		}
	}
	warn(c, warnings)
	set.Warnings = append(set.Warnings, warnings...)
	return problems, nil
}

// playbookField is where a manifest names the playbook.
func playbookField(a manifest.Ansible, path string) string {
	if a.RemotePlaybook {
		return path + ".remotePlaybook"
	}
	return path + ".playbook"
}

// checkPlaybook checks what a build of doc would take along. Permanent: it is refused.
func checkPlaybook(ctx context.Context, doc *manifest.Document, a manifest.Ansible, needs *ansiblex.Needs, checked map[string]error) error {
	if _, err := ansiblex.FindPlaybookProgram(); err != nil {
		return err
	}
	if a.VaultPassword != "" { // what it opens must be read to be parsed, and only a worker may have it
		return errs.Reason("it needs %s", a.VaultPassword)
	}
	if needs != nil && !needs.Here {
		return errs.Reason("it needs what %s lists, which a build fetches", a.Requirements)
	}
	if a.Source != nil {
		return errs.Reason("it is in git repository %s, of which nothing is run here", a.Source)
	}
	b, inside, err := packPlaybook(doc.Dir, a)
	if err != nil {
		return err
	}
	defer b.file.Close()
	content, err := json.Marshal(inside)
	if err != nil {
		return err
	}
	key := b.digest + string(content)
	if err, ok := checked[key]; ok {
		return err
	}
	checked[key] = parse(ctx, doc, b, inside)
	return checked[key]
}

// parse runs ansible-playbook --syntax-check in a folder that is gone afterwards.
func parse(ctx context.Context, doc *manifest.Document, b packed, a manifest.Ansible) error {
	ctx, cancel := context.WithTimeout(ctx, syntaxTimeout)
	defer cancel()
	if _, err := b.file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	return inScratch(doc.Ref(), b.file, func(folder *ansiblex.Folder) error { return parseIn(ctx, folder, doc, a) })
}

func parseIn(ctx context.Context, folder *ansiblex.Folder, doc *manifest.Document, a manifest.Ansible) error {
	log, err := folder.OpenLog()
	if err != nil {
		return err
	}
	defer log.Close()
	play := ansiblex.PlayOf(a)
	play.SyntaxCheck = true
	if doc.Server != nil {
		play.Hosts = []ansiblex.Host{{Name: doc.Metadata.Name}}
	}
	prepared, err := folder.Prepare(play)
	if err != nil {
		return err
	}
	out, err := prepared.Run(ctx, nil, ansiblex.Sinks{Log: log})
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return errs.Reason("it has not ended within %s", syntaxTimeout)
	case err != nil:
		return err
	case out.Result == ansiblex.OK:
		return nil
	case out.Result == ansiblex.Killed:
		return errs.Reason("ansible-playbook was killed")
	}
	return errs.NewPermanent("playbook", "check syntax", errs.Reason("Ansible refuses it: %s", strings.Join(strings.Fields(out.Message), " ")), "")
}
