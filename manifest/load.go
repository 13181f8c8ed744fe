package manifest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// Options say how manifests are read.
type Options struct {
	// Set are overrides: "spec.mmImage=debian12" for every Server of the apply,
	// "network/db-net:spec.mtu=1400" for one document. The field gives the value its type.
	Set []string
	// Lenient turns unknown fields into warnings. What is not supported yet stays an error.
	Lenient bool
	// AllowHTTP takes http:// where only https:// is taken otherwise (auth.url).
	AllowHTTP bool
	// Stdin is read for the source "-"; nil means os.Stdin.
	Stdin io.Reader
	// WorkDir is the folder of documents from "-"; "" means the current one.
	WorkDir string
	// HTTP fetches http(s) sources; nil means a client with a bound on redirects.
	HTTP *http.Client
	// Known lets a root password in clear text keep the hash that the server already has,
	// so that applying again changes nothing. Nil: a new hash each time.
	Known Known
}

// Set is what an apply declares.
type Set struct {
	Documents []*Document
	Warnings  Problems
}

// Find gives the first document of a kind and name, or nil.
func (s *Set) Find(kind Kind, name string) *Document {
	for _, doc := range s.Documents {
		if doc.Kind == kind && doc.Metadata.Name == name {
			return doc
		}
	}
	return nil
}

// Check reads sources and validates what they declare against known: all problems of
// all documents of all files at once, in their order. No problem means that an apply
// may begin. The set is never nil; it holds what could be read.
func Check(ctx context.Context, sources []string, opts Options, known Known) (*Set, Problems) {
	if opts.Known == nil {
		opts.Known = known
	}
	set, problems := Load(ctx, sources, opts)
	problems = append(problems, Validate(set, known)...)
	problems.sort()
	return set, problems
}

// Load reads and decodes sources: files, folders (their own *.yaml and *.yml, sorted),
// http(s) URLs, "-". It checks each document by itself; Validate does the rest. The set is never nil.
func Load(ctx context.Context, sources []string, opts Options) (*Set, Problems) {
	read := reader{opts: opts}
	read.readAll(ctx, sources)
	l := loader{opts: &opts, set: &Set{}}
	l.out.problems = read.problems
	l.parseOverrides()
	for _, src := range read.sources {
		l.source(src)
	}
	l.unusedOverrides()
	if len(l.set.Documents) == 0 && len(l.out.problems) == 0 {
		l.out.problems = append(l.out.problems, Problem{File: strings.Join(sources, ", "), Message: "no documents in it"})
	}
	l.out.problems.sort()
	l.out.warnings.sort()
	l.set.Warnings = l.out.warnings
	return l.set, l.out.problems
}

type loader struct {
	opts      *Options
	overrides []*override
	set       *Set
	out       collector
}

func (l *loader) parseOverrides() {
	for _, text := range l.opts.Set {
		o, err := parseOverride(text)
		if err != nil {
			path, _, _ := strings.Cut(text, "=")
			l.out.problems = append(l.out.problems, Problem{File: "--set " + clip(path, 60), Message: err.Error(), order: MaxFiles})
			continue
		}
		l.overrides = append(l.overrides, o)
	}
}

func (l *loader) unusedOverrides() {
	for _, o := range l.overrides {
		if o.used {
			continue
		}
		what := "no " + string(o.kind) + " document"
		if o.name != "" {
			what = "no " + Ref(o.kind, o.name)
		}
		l.out.problem("", issue{at: position{source: o.source()}, message: what + " in this apply", next: "remove the flag, or name a document of the apply"})
	}
}

func (l *loader) source(src *source) {
	bodies, err := parse(src)
	if err != nil {
		i := issue{at: position{source: src}, message: err.Error()}
		var syntax *syntaxError
		if errors.As(err, &syntax) {
			i.at = syntax.at
		}
		l.out.problem("", i)
		return
	}
	for _, body := range bodies {
		l.document(src, body)
	}
}

// document decodes one document. What cannot even be told to be of some kind is left out of the set.
func (l *loader) document(src *source, body ast.Node) {
	doc := &Document{
		File: src.name, Dir: src.dir,
		places: map[string]place{}, bad: map[string]struct{}{}, prefixes: map[string]int{},
	}
	d := &decoder{opts: l.opts, out: &l.out, doc: doc}
	var early []issue // found before the document has a name
	r := resolver{source: src, report: func(at position, path, message, next string) {
		early = append(early, issue{at: at, path: path, message: message, next: next})
	}}
	tree := r.resolve(body)
	named := d.kind(tree, &early)
	for _, i := range early {
		d.report(i)
	}
	if !named || r.over {
		return
	}
	tree = l.override(d, tree)
	d.document(tree)
	l.set.Documents = append(l.set.Documents, doc)
}

// kind settles the document's kind and with it its name in messages; false when the
// document has none that can be declared.
func (d *decoder) kind(tree *value, early *[]issue) bool {
	d.doc.start, d.doc.Line = tree.at, tree.at.line
	if tree.shape != shapeMapping {
		*early = append(*early, issue{
			at: tree.at, cut: shownCharacters, message: fmt.Sprintf("a document must be a mapping, but this is %s", tree.shape),
			next: "begin with apiVersion: v1 and kind: Server",
		})
		return false
	}
	e := tree.lookup("kind")
	if e == nil || e.value.shape != shapeString {
		*early = append(*early, issue{at: tree.at, path: "kind", message: "is required", next: "write one of " + alternatives(kindNames())})
		return false
	}
	d.doc.Kind = Kind(e.value.text)
	if e.value.text == "VirtualNetwork" {
		d.doc.Kind = KindNetwork
	}
	if !slices.Contains(Kinds(), d.doc.Kind) {
		*early = append(*early, unknownKind(e.value))
		return false
	}
	name := ""
	if m := tree.lookup("metadata"); m != nil {
		if n := m.value.lookup("name"); n != nil {
			name = clip(n.value.text, MaxNameLength)
		}
	}
	d.name = strings.TrimSuffix(Ref(d.doc.Kind, name), "/")
	return true
}

func unknownKind(v *value) issue {
	if reason, ok := unsupportedKinds[v.text]; ok {
		return issue{at: v.at, path: "kind", message: reason}
	}
	i := issue{at: v.at, path: "kind", message: quote(v.text) + " is not a kind", next: "write one of " + alternatives(kindNames())}
	if near := Nearest(v.text, kindNames()); near != "" {
		i.next = "did you mean " + near + "?"
	}
	return i
}

func (l *loader) override(d *decoder, tree *value) *value {
	_, name, _ := strings.Cut(d.name, "/")
	for _, o := range l.overrides {
		if !o.matches(d.doc.Kind, name) {
			continue
		}
		o.used = true
		changed, err := o.apply(tree)
		if err != nil {
			d.report(issue{at: position{source: o.source()}, message: err.Error()})
			continue
		}
		tree = changed
	}
	return tree
}

// Kinds are the kinds that can be declared, in the order in which they are built.
func Kinds() []Kind { return []Kind{KindNetwork, KindImage, KindVolume, KindServer, KindPlaybook} }

// kindNames are the kinds for messages, the most wanted first.
func kindNames() []string {
	return []string{string(KindServer), string(KindNetwork), string(KindVolume), string(KindImage), string(KindPlaybook)}
}
