package gitrepo

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/manifest"
)

// fetchTimeout bounds a fetch: one commit of a repository with playbooks has seconds of
// data, and a person waits for it.
const fetchTimeout = 5 * time.Minute

// Fetch puts the files of source.Ref into dir, which is empty, byte for byte as they are in
// the repository, and gives the commit's id. Errors are Permanent and quote git, without
// logins; dir may have anything in it then. A cancelled fetch gives ctx's error.
func Fetch(ctx context.Context, source manifest.GitSource, dir string) (commit string, err error) {
	source.Commit = ""
	protocol, err := manifest.GitProtocol(source.URL)
	if err != nil {
		return "", errs.NewPermanent("git source", "fetch", errs.Reason("its url %w", err), "")
	}
	ref := source.Ref
	if ref == "" {
		ref = "HEAD"
	}
	if err := manifest.GitRef(ref); err != nil {
		return "", errs.NewPermanent("git repository "+source.URL, "fetch", errs.Reason("its ref %w", err), "")
	}
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	g := &git{dir: dir, protocol: protocol, out: io.Discard, most: ordinary}
	if g.program, err = exec.LookPath("git"); err != nil {
		return "", errs.NewPermanent("git repository "+source.URL, "fetch", err, "install git")
	}
	if commit, err = g.fetch(ctx, source.URL, ref); err != nil {
		return "", refuse(ctx, source, err)
	}
	return commit, nil
}

// fetch brings files and leaves nothing of git beside them.
func (g *git) fetch(ctx context.Context, address, ref string) (commit string, err error) {
	if err := g.run(ctx, "init", "--quiet", "--template="); err != nil {
		return "", err
	}
	if err := g.writeAttributes(); err != nil {
		return "", err
	}
	if err := g.download(ctx, "fetch", "--quiet", "--depth=1", "--no-tags", "--no-recurse-submodules", "--", address, ref); err != nil {
		return "", err
	}
	var id strings.Builder
	if err := g.to(&id).run(ctx, "rev-parse", "--verify", "FETCH_HEAD^{commit}"); err != nil {
		return "", err
	}
	commit = strings.TrimSpace(id.String())
	if err := g.measure(ctx, commit); err != nil {
		return "", err
	}
	if err := g.run(ctx, "checkout", "--quiet", "--detach", commit); err != nil {
		return "", err
	}
	return commit, os.RemoveAll(filepath.Join(g.dir, ".git"))
}

func refuse(ctx context.Context, source manifest.GitSource, err error) error {
	next := "see that its url and ref are right (a commit's id is written whole), and that `git ls-remote " + source.URL + "` works here without a question"
	switch {
	case errors.Is(err, errTooLarge):
		next = "name a repository that has the playbook and little else"
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		err = errs.Reason("it has not ended within %s", fetchTimeout)
	case ctx.Err() != nil:
		return ctx.Err()
	}
	return errs.NewPermanent("git repository "+source.String(), "fetch", err, next)
}

// Inside sees that a path of the files at dir is there, and leads nowhere else by a
// symlink on its way: dir is somebody else's, and what is found will be packed.
func Inside(dir, path string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	if _, err = root.Stat(filepath.FromSlash(path)); err != nil {
		var own *os.PathError
		if errors.As(err, &own) {
			err = own.Err
		}
	}
	return err
}
