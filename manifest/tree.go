package manifest

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

// shape is what a value is in YAML.
type shape string

const (
	shapeNull     shape = "nothing"
	shapeMapping  shape = "a mapping"
	shapeSequence shape = "a list"
	shapeString   shape = "text"
	shapeInt      shape = "a number"
	shapeFloat    shape = "a fraction"
	shapeBool     shape = "true or false"
	// shapeFlag is the text of a --set: the field it lands on gives it its type.
	shapeFlag shape = "text of --set"
)

// value is a YAML value with aliases and merge keys resolved. Aliases share their
// anchor's value, so the tree is a graph: it is never walked past its size limit.
type value struct {
	shape   shape
	at      position
	entries []entry  // of a mapping, in order
	items   []*value // of a sequence
	text    string   // of a scalar, as written
	number  int64
	real    float64
	truth   bool
	nodes   int // of the expansion, itself included
}

// entry is one key of a mapping.
type entry struct {
	key   string
	at    position
	value *value
}

func (v *value) lookup(key string) *entry {
	if v == nil {
		return nil
	}
	for i := range v.entries {
		if v.entries[i].key == key {
			return &v.entries[i]
		}
	}
	return nil
}

// resolver turns one document's AST into a tree.
type resolver struct {
	source  *source
	anchors map[string]*value
	over    bool // the expansion is larger than MaxNodes
	report  func(at position, path, message, next string)
}

// resolve gives the tree. When it is too large once its aliases are expanded, that is
// reported, over is set, and nothing may walk the tree; it can still be looked up in.
func (r *resolver) resolve(body ast.Node) *value {
	r.anchors = map[string]*value{}
	return r.node(body, "")
}

// grow adds to a value's size; the first value that grows too large is reported.
func (r *resolver) grow(v *value, by int, path string) {
	// The sum is capped, since sums of sums of an alias bomb would wrap around.
	v.nodes = min(v.nodes+by, MaxNodes+1)
	if v.nodes > MaxNodes && !r.over {
		r.over = true
		r.report(v.at, path, fmt.Sprintf("more than %d values once its aliases are expanded, the limit (alias expansion)", MaxNodes),
			"write fewer aliases of aliases")
	}
}

func (r *resolver) node(n ast.Node, path string) *value {
	switch n := n.(type) {
	case *ast.MappingNode:
		return r.mapping(n.Values, r.source.at(n.GetToken()), path)
	case *ast.MappingValueNode:
		return r.mapping([]*ast.MappingValueNode{n}, r.source.at(n.GetToken()), path)
	case *ast.SequenceNode:
		return r.sequence(n, path)
	case *ast.AnchorNode:
		return r.anchor(n, path)
	case *ast.AliasNode:
		return r.alias(n, path)
	case *ast.TagNode:
		return r.tag(n, path)
	case nil:
		return &value{shape: shapeNull, at: position{source: r.source}, nodes: 1}
	}
	return r.scalar(n, path)
}

func (r *resolver) mapping(pairs []*ast.MappingValueNode, at position, path string) *value {
	v := &value{shape: shapeMapping, at: at, nodes: 1}
	var merges []*ast.MappingValueNode
	index := map[string]position{}
	for i, pair := range pairs {
		if i == 0 {
			v.at = r.source.at(pair.Key.GetToken())
		}
		if pair.Key.IsMergeKey() {
			merges = append(merges, pair)
			continue
		}
		key, ok := r.key(pair.Key, path)
		if !ok {
			continue
		}
		here := r.source.at(pair.Key.GetToken())
		child := r.node(pair.Value, join(path, key))
		if first, twice := index[key]; twice {
			r.report(here, join(path, key), fmt.Sprintf("is given twice (first on line %d)", first.line), "remove one of them")
			continue
		}
		index[key] = here
		v.entries = append(v.entries, entry{key: key, at: here, value: child})
		r.grow(v, 1+child.nodes, path)
	}
	for _, pair := range merges {
		r.merge(v, index, pair, path)
	}
	return v
}

// merge adds what a merge key brings: keys of the mapping itself win, then those of
// the earlier merged mapping.
func (r *resolver) merge(into *value, index map[string]position, pair *ast.MappingValueNode, path string) {
	from := r.node(pair.Value, join(path, "<<"))
	mappings := []*value{from}
	if from.shape == shapeSequence {
		mappings = from.items
	}
	for _, m := range mappings {
		if m.shape != shapeMapping {
			r.report(r.source.at(pair.Key.GetToken()), join(path, "<<"),
				fmt.Sprintf("merges %s", m.shape), "a merge key takes an alias of a mapping, or a list of such aliases")
			continue
		}
		for _, e := range m.entries {
			if r.over {
				return
			}
			if _, own := index[e.key]; !own {
				index[e.key] = e.at
				into.entries = append(into.entries, e)
				r.grow(into, 1+e.value.nodes, path)
			}
		}
	}
}

func (r *resolver) key(n ast.MapKeyNode, path string) (string, bool) {
	var node ast.Node = n
	if explicit, ok := node.(*ast.MappingKeyNode); ok {
		node = explicit.Value
	}
	switch k := node.(type) {
	case *ast.StringNode:
		return k.Value, true
	case *ast.IntegerNode, *ast.BoolNode, *ast.FloatNode, *ast.NullNode:
		return k.GetToken().Value, true
	}
	r.report(r.source.at(n.GetToken()), path, "a key that is not plain text", "write the key as a word or a quoted string")
	return "", false
}

func (r *resolver) sequence(n *ast.SequenceNode, path string) *value {
	v := &value{shape: shapeSequence, at: r.source.at(n.GetToken()), nodes: 1}
	for i, item := range n.Values {
		child := r.node(item, path+"["+strconv.Itoa(i)+"]")
		v.items = append(v.items, child)
		r.grow(v, child.nodes, path)
	}
	return v
}

func (r *resolver) anchor(n *ast.AnchorNode, path string) *value {
	v := r.node(n.Value, path)
	if n.Name != nil {
		r.anchors[n.Name.GetToken().Value] = v
	}
	return v
}

func (r *resolver) alias(n *ast.AliasNode, path string) *value {
	at := r.source.at(n.Start)
	name := ""
	if n.Value != nil {
		name = n.Value.GetToken().Value
	}
	v, ok := r.anchors[name]
	if !ok {
		r.report(at, path, fmt.Sprintf("alias *%s has no anchor before it", clip(name, 60)), fmt.Sprintf("write &%s at the value that is meant", clip(name, 60)))
		return &value{shape: shapeNull, at: at, nodes: 1}
	}
	return v
}

// tag honours YAML's own tags for scalars; a tag of an application means code, which a
// manifest has none of.
func (r *resolver) tag(n *ast.TagNode, path string) *value {
	v := r.node(n.Value, path)
	switch n.Start.Value {
	case "!!str":
		if v.shape != shapeMapping && v.shape != shapeSequence {
			text := *v
			text.shape = shapeString
			return &text
		}
	case "!!int", "!!bool", "!!float", "!!null", "!!map", "!!seq":
		return v
	}
	r.report(r.source.at(n.Start), path, fmt.Sprintf("tag %s is not known", clip(n.Start.Value, 60)), "remove it")
	return v
}

func (r *resolver) scalar(n ast.Node, path string) *value {
	tk := n.GetToken()
	v := &value{at: r.source.at(tk), nodes: 1}
	if tk != nil {
		v.text = tk.Value
	}
	switch n := n.(type) {
	case *ast.NullNode:
		v.shape = shapeNull
	case *ast.StringNode:
		v.shape, v.text = shapeString, n.Value
	case *ast.LiteralNode:
		v.shape, v.text = shapeString, n.Value.Value
	case *ast.BoolNode:
		v.shape, v.truth = shapeBool, n.Value
	case *ast.FloatNode:
		v.shape, v.real = shapeFloat, n.Value
	case *ast.IntegerNode:
		r.integer(v, n)
	default:
		v.shape = shapeString
		if tk == nil || tk.Type == token.InvalidType {
			r.report(v.at, path, "a value that cannot be read", "write it as text in quotes")
		}
	}
	return v
}

func (r *resolver) integer(v *value, n *ast.IntegerNode) {
	v.shape = shapeInt
	switch number := n.Value.(type) {
	case int64:
		v.number = number
	case uint64:
		if number > 1<<62 {
			v.shape = shapeString // far beyond any field's range; its text is kept
		}
		v.number = int64(number)
	}
}

// join appends a key to a path; keys that are not plain words are quoted.
func join(path, key string) string {
	if strings.ContainsAny(key, ". []\"\n\t") || len(key) > MaxNameLength {
		key = quote(key)
	}
	if path == "" {
		return key
	}
	return path + "." + key
}
