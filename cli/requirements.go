package cli

import (
	"os"
	"strings"

	"burrow.dev/burrow/internal/ansiblex"
	"burrow.dev/burrow/internal/bundle"
	"burrow.dev/burrow/manifest"
)

// needsOf reads the requirements file of a document's playbook; nil: it has none, or one
// that is known when a repository is fetched. Errors are Permanent.
func needsOf(doc *manifest.Document, a manifest.Ansible) (*ansiblex.Needs, error) {
	if a.Requirements == "" || a.Source != nil {
		return nil, nil
	}
	dir, rel, err := bundle.Root(doc.Dir, filesOf(a)...)
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return ansiblex.ReadNeeds(root, ansiblex.PlayOf(withFiles(a, rel)))
}

// unpinned warns of requirements that another run, or another host, may get differently.
func unpinned(doc *manifest.Document, path string, needs *ansiblex.Needs) manifest.Problems {
	if needs == nil || needs.Here {
		return nil
	}
	names := needs.Unpinned()
	if len(names) == 0 {
		return nil
	}
	return manifest.Problems{doc.Problem(path+".requirements", "it names no exact version of "+strings.Join(names, ", ")+
		": a later run, or one on another host, may get another", "add version: to each")}
}
