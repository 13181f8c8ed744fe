package manifest

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// override is one --set: a field's path and its text, for every Server of the apply or
// for one named document.
type override struct {
	flag  string // "--set spec.cpu", without the value, which may be a secret
	kind  Kind
	name  string // "": every document of the kind
	path  []string
	value string
	used  bool
}

var (
	overridePattern = regexp.MustCompile(`(?s)^(?:([A-Za-z]+)/([^:=]+):)?((?:spec|metadata)\.[^=]+)=(.*)$`)
	segmentPattern  = regexp.MustCompile(`^([^\[\]]+)((?:\[\d{1,4}\])*)$`)
)

// parseOverride reads "spec.cpu=2" or "server/db:spec.networkInterface[0].address=10.0.0.5".
func parseOverride(text string) (*override, error) {
	parts := overridePattern.FindStringSubmatch(text)
	if parts == nil {
		return nil, fmt.Errorf("not of the form [KIND/NAME:]spec.FIELD=VALUE")
	}
	o := &override{flag: "--set " + parts[3], kind: KindServer, value: parts[4]}
	if parts[1] != "" {
		kind, name, err := ParseKindName(parts[1], parts[2])
		if err != nil {
			return nil, err
		}
		o.kind, o.name, o.flag = kind, name, "--set "+Ref(kind, name)+":"+parts[3]
	}
	for segment := range strings.SplitSeq(parts[3], ".") {
		found := segmentPattern.FindStringSubmatch(segment)
		if found == nil {
			return nil, fmt.Errorf("%s is not a field's path", quote(parts[3]))
		}
		o.path = append(o.path, found[1])
		o.path = append(o.path, indexPattern.FindAllString(found[2], -1)...)
	}
	return o, nil
}

func (o *override) source() *source { return &source{name: o.flag, order: MaxFiles} }

func (o *override) matches(kind Kind, name string) bool {
	return o.kind == kind && (o.name == "" || o.name == name)
}

// apply gives a copy of tree with the field set; what is not on the path is shared,
// since an alias elsewhere may mean the same value.
func (o *override) apply(tree *value) (*value, error) {
	leaf := &value{shape: shapeFlag, text: o.value, at: position{source: o.source()}, nodes: 1}
	return setIn(tree, o.path, "", leaf)
}

func setIn(v *value, path []string, done string, leaf *value) (*value, error) {
	if len(path) == 0 {
		return leaf, nil
	}
	head, rest := path[0], path[1:]
	if strings.HasPrefix(head, "[") {
		return setItem(v, head, rest, done, leaf)
	}
	if v == nil || v.shape == shapeNull {
		v = &value{shape: shapeMapping, at: leaf.at, nodes: 1}
	}
	if v.shape != shapeMapping {
		return nil, fmt.Errorf("%s is %s in the manifest, not a mapping", done, v.shape)
	}
	changed := *v
	changed.entries = slices.Clone(v.entries)
	own := join(done, head)
	for i, e := range changed.entries {
		if e.key == head {
			child, err := setIn(e.value, rest, own, leaf)
			changed.entries[i].value = child
			if len(rest) == 0 {
				changed.entries[i].at = leaf.at
			}
			return &changed, err
		}
	}
	child, err := setIn(nil, rest, own, leaf)
	if err != nil {
		return nil, err
	}
	changed.entries = append(changed.entries, entry{key: head, at: leaf.at, value: child})
	return &changed, nil
}

func setItem(v *value, head string, rest []string, done string, leaf *value) (*value, error) {
	index, err := strconv.Atoi(strings.Trim(head, "[]"))
	if err != nil {
		return nil, fmt.Errorf("%s%s is not an index", done, head)
	}
	if v == nil || v.shape != shapeSequence || index >= len(v.items) {
		return nil, fmt.Errorf("the manifest has no %s%s", done, head)
	}
	changed := *v
	changed.items = slices.Clone(v.items)
	changed.items[index], err = setIn(v.items[index], rest, done+head, leaf)
	return &changed, err
}

// parseFlag reads the text of a --set as YAML, for fields that are not plain text.
func (d *decoder) parseFlag(v *value, path string) *value {
	src := &source{name: v.at.source.name, order: v.at.source.order, text: []byte(v.text)}
	bodies, err := parse(src)
	if err != nil || len(bodies) > 1 {
		d.complain(path, "its text is not YAML", "write a list as [a, b] and a mapping as {key: value}")
		return nil
	}
	if len(bodies) == 0 {
		return &value{shape: shapeNull, at: v.at, nodes: 1}
	}
	r := resolver{source: src, report: func(_ position, at, message, next string) {
		d.report(issue{at: v.at, path: join(path, at), message: message, next: next, cut: -1})
	}}
	parsed := r.resolve(bodies[0])
	if r.over {
		d.doc.spoil(path)
		return nil
	}
	return parsed
}
