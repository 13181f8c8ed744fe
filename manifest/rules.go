package manifest

import (
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// field is one field of an input struct with the rules of its tags.
type field struct {
	index      []int
	name       string
	aliases    []string
	deprecated []string
	secret     bool
	rules      rules
}

// rules are the constraints of a jsonschema tag.
type rules struct {
	required  bool
	standard  string // default
	enum      []string
	minimum   *int
	maximum   *int
	minLength *int
	maxLength *int
	maxItems  *int
}

// names are all names of a field, its own first.
func (f field) names() []string {
	return slices.Concat([]string{f.name}, f.aliases, f.deprecated)
}

// fieldsOf reads the tags of an input struct; embedded structs give their fields.
func fieldsOf(t reflect.Type) []field {
	var fields []field
	for i := range t.NumField() {
		sf := t.Field(i)
		if sf.Anonymous {
			for _, inner := range fieldsOf(sf.Type) {
				inner.index = append([]int{i}, inner.index...)
				fields = append(fields, inner)
			}
			continue
		}
		name, _, _ := strings.Cut(sf.Tag.Get("json"), ",")
		f := field{index: []int{i}, name: name, secret: sf.Tag.Get("secret") == "true", rules: rulesOf(sf.Tag.Get("jsonschema"))}
		for alias := range strings.SplitSeq(sf.Tag.Get("alias"), ",") {
			if old, ok := strings.CutPrefix(alias, "!"); ok {
				f.deprecated = append(f.deprecated, old)
			} else if alias != "" {
				f.aliases = append(f.aliases, alias)
			}
		}
		fields = append(fields, f)
	}
	return fields
}

func rulesOf(tag string) rules {
	var r rules
	for part := range strings.SplitSeq(tag, ",") {
		key, text, _ := strings.Cut(part, "=")
		switch key {
		case "required":
			r.required = true
		case "default":
			r.standard = text
		case "enum":
			r.enum = append(r.enum, text)
		case "minimum":
			r.minimum = number(text)
		case "maximum":
			r.maximum = number(text)
		case "minLength":
			r.minLength = number(text)
		case "maxLength":
			r.maxLength = number(text)
		case "maxItems":
			r.maxItems = number(text)
		}
	}
	return r
}

func number(text string) *int {
	n, err := strconv.Atoi(text)
	if err != nil {
		return nil
	}
	return &n
}
