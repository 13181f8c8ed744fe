package cli

import (
	"slices"
	"strings"

	ucli "github.com/urfave/cli/v2"

	"burrow.dev/burrow/manifest"
)

// Ref names a resource.
type Ref struct {
	Kind manifest.Kind
	Name string
}

// String gives "server/db", which is the workflow ID of its operations too.
func (r Ref) String() string { return manifest.Ref(r.Kind, r.Name) }

// resourceArgs reads `KIND NAME...` or `KIND/NAME...`. want is how many there must be; 0
// is one at least.
func resourceArgs(c *ucli.Context, want int) ([]Ref, error) {
	words := c.Args().Slice()
	if len(words) == 0 {
		return nil, usageErrorf(c, "name a resource, as KIND NAME or KIND/NAME")
	}
	refs, err := parseRefs(words)
	if err != nil {
		return nil, usageErrorf(c, "%w", err)
	}
	if want > 0 && len(refs) != want {
		return nil, usageErrorf(c, "%d resources are named, and it takes %d", len(refs), want)
	}
	return refs, nil
}

// parseRefs reads words that are all KIND/NAME, or one KIND and then names.
func parseRefs(words []string) ([]Ref, error) {
	var refs []Ref
	if !strings.Contains(words[0], "/") {
		if len(words) == 1 {
			_, _, err := manifest.ParseKindName(words...)
			return nil, err
		}
		for _, name := range words[1:] {
			kind, name, err := manifest.ParseKindName(words[0], name)
			if err != nil {
				return nil, err
			}
			refs = append(refs, Ref{kind, name})
		}
		return refs, nil
	}
	for _, word := range words {
		kind, name, err := manifest.ParseKindName(word)
		if err != nil {
			return nil, err
		}
		if ref := (Ref{kind, name}); !slices.Contains(refs, ref) {
			refs = append(refs, ref)
		}
	}
	return refs, nil
}

// serverArg reads a server as NAME, `server NAME` or server/NAME, with what stood after "--".
func serverArg(c *ucli.Context) (name string, rest []string, err error) {
	return parseServer(c, c.Args().Slice())
}

func parseServer(c *ucli.Context, words []string) (name string, rest []string, err error) {
	if i := slices.Index(words, "--"); i >= 0 {
		words, rest = words[:i], words[i+1:]
	}
	switch len(words) {
	case 1:
		if !strings.Contains(words[0], "/") {
			words = []string{manifest.KindServer.Word(), words[0]}
		}
	case 2:
	default:
		return "", nil, usageErrorf(c, "name one server")
	}
	kind, name, err := manifest.ParseKindName(words...)
	if err != nil {
		return "", nil, usageErrorf(c, "%w", err)
	}
	if kind != manifest.KindServer {
		return "", nil, usageErrorf(c, "it takes a server, and %s is a %s", name, kind.Word())
	}
	return name, rest, nil
}
