package cli

import (
	"context"
	"errors"
	"os"
	"slices"

	"burrow.dev/burrow/internal/bundle"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/internal/gitrepo"
	"burrow.dev/burrow/manifest"
)

// checkout is a commit of a repository that documents have their playbooks from. It is
// fetched once for all of them, so they get the same commit.
type checkout struct {
	source manifest.GitSource
	dir    string
}

// pack archives the folder of a document's playbook and makes its paths those of the archive.
func (p *plan) pack(ctx context.Context, doc *manifest.Document) (digest string, err error) {
	a, _ := doc.Ansible()
	if a == nil || a.Pull != nil { // the guest fetches it
		return "", nil
	}
	base, run := doc.Dir, *a
	if a.Source != nil {
		fetched, err := p.fetch(ctx, *a.Source, filesOf(run))
		if err != nil {
			return "", err
		}
		base, run.Source = fetched.dir, &fetched.source
	}
	b, inside, err := packPlaybook(base, run)
	if err != nil {
		var own *errs.Error
		if a.Source != nil && errors.As(err, &own) {
			own.Object = "git repository " + run.Source.String() // the folder is gone when this is read
		}
		return "", err
	}
	p.bundles = append(p.bundles, b)
	*a = inside
	return b.digest, nil
}

// filesOf are the files that a run names: its playbooks, then its inventory and its
// requirements, if it has them.
func filesOf(a manifest.Ansible) []string {
	paths := slices.Clone(a.Playbook)
	for _, file := range []string{a.Inventory, a.Requirements} {
		if file != "" {
			paths = append(paths, file)
		}
	}
	return paths
}

// withFiles is a with other paths for filesOf(a).
func withFiles(a manifest.Ansible, paths []string) manifest.Ansible {
	n := len(a.Playbook)
	a.Playbook, paths = paths[:n:n], paths[n:]
	for _, file := range []*string{&a.Inventory, &a.Requirements} {
		if *file != "" {
			*file, paths = paths[0], paths[1:]
		}
	}
	return a
}

// packPlaybook archives the folder that a, of a manifest in dir, needs. inside is a with
// the paths of the archive.
func packPlaybook(dir string, a manifest.Ansible) (b packed, inside manifest.Ansible, err error) {
	root, rel, err := bundle.Root(dir, filesOf(a)...)
	if err != nil {
		return packed{}, a, err
	}
	if b, err = packFolder(root); err != nil {
		return packed{}, a, err
	}
	return b, withFiles(a, rel), nil
}

// fetch gives the files of a source; the paths are in it.
func (p *plan) fetch(ctx context.Context, source manifest.GitSource, paths []string) (checkout, error) {
	i := slices.IndexFunc(p.checkouts, func(c checkout) bool { return c.source.URL == source.URL && c.source.Ref == source.Ref })
	if i < 0 {
		dir, err := os.MkdirTemp("", "burrow-source-*")
		if err != nil {
			return checkout{}, err
		}
		i = len(p.checkouts)
		p.checkouts = append(p.checkouts, checkout{source: source, dir: dir})
		if p.checkouts[i].source.Commit, err = gitrepo.Fetch(ctx, source, dir); err != nil {
			return checkout{}, err
		}
	}
	c := p.checkouts[i]
	for _, path := range paths {
		if err := gitrepo.Inside(c.dir, path); err != nil {
			return checkout{}, errs.NewPermanent("playbook file "+path, "find in git repository "+c.source.String(), err, "paths are relative to the repository's top")
		}
	}
	return c, nil
}
