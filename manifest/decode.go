package manifest

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// oneOrMany is a list that users may write as a single value.
type oneOrMany[T any] []T

func (oneOrMany[T]) single() {}

// decoder reads one document's tree into its input struct. It never stops at a problem.
type decoder struct {
	opts *Options
	out  *collector
	doc  *Document
	name string // "server/db", for messages
	// specFields are the fields of the kind's spec, for keys that stand a level too high.
	specFields []string
}

func (d *decoder) report(i issue) { d.out.problem(d.name, i) }

// complain reports a field's problem and marks it, so that later stages leave it alone.
func (d *decoder) complain(path string, message, next string) {
	d.complainCut(path, 0, message, next)
}

// complainCut is complain for values of which only a part may be shown.
func (d *decoder) complainCut(path string, cut int, message, next string) {
	d.doc.spoil(path)
	where := d.doc.where(path)
	d.report(issue{at: where.at, path: where.path, message: message, next: next, cut: cut})
}

// mark notes where a field was written.
func (d *decoder) mark(path, written string, at position) {
	d.doc.places[path] = place{at: at, path: written}
}

// structure fills an input struct. v nil: defaults only, and silent about required fields.
func (d *decoder) structure(v *value, target reflect.Value, path string) {
	v = d.shaped(v, shapeMapping, path)
	fields := fieldsOf(target.Type())
	meant := d.strangers(v, path, fields)
	for _, f := range fields {
		e := d.pick(v, f, path)
		own := join(path, f.name)
		fieldValue := target.FieldByIndex(f.index)
		if e == nil && meant[f.name] {
			continue // written, but misspelt: reported once
		}
		if e == nil || e.value.shape == shapeNull {
			d.absent(v, e, f, fieldValue, own)
			continue
		}
		at := e.value.at
		if e.value.shape == shapeMapping || e.value.shape == shapeSequence || at.line == 0 {
			at = e.at
		}
		d.mark(own, join(path, e.key), at)
		d.field(e.value, fieldValue, own, f)
	}
}

// strangers reports the keys that no field has, and gives the fields that they may have meant.
func (d *decoder) strangers(v *value, path string, fields []field) map[string]bool {
	meant := map[string]bool{}
	if v == nil {
		return meant
	}
	var names []string
	for _, f := range fields {
		names = append(names, f.names()...)
	}
	for _, e := range v.entries {
		if slices.Contains(names, e.key) {
			continue
		}
		near := Nearest(e.key, names)
		d.unknown(e, path, near, fields)
		if near != "" && !d.opts.Lenient {
			meant[near] = true
		}
	}
	return meant
}

// pick finds the entry of a field under any of its names. A --set wins over another name.
func (d *decoder) pick(v *value, f field, path string) *entry {
	var found *entry
	for _, name := range f.names() {
		e := v.lookup(name)
		if e == nil {
			continue
		}
		if slices.Contains(f.deprecated, name) {
			d.out.warn(d.name, issue{at: e.at, path: join(path, name), message: "deprecated name", next: "write " + f.name})
		}
		switch {
		case found == nil || e.value.shape == shapeFlag:
			found = e
		case found.value.shape != shapeFlag:
			d.report(issue{
				at: e.at, path: join(path, name), message: fmt.Sprintf("is another name of %s, which is given on line %d", found.key, found.at.line),
				next: "remove one of them",
			})
		}
	}
	return found
}

// absent sets a field's default, or reports that it is missing.
func (d *decoder) absent(parent *value, e *entry, f field, target reflect.Value, path string) {
	if f.rules.required {
		if !d.doc.sound(parentPath(path)) {
			return // what is around it could not be read
		}
		at := d.doc.where(path).at
		if parent != nil {
			at = parent.at
		}
		if e != nil {
			at = e.at
		}
		d.doc.spoil(path)
		d.report(issue{at: at, path: path, message: "is required", next: "add it"})
		return
	}
	switch target.Kind() {
	case reflect.Struct:
		d.structure(nil, target, path)
	case reflect.String:
		target.SetString(f.rules.standard)
	case reflect.Int:
		if n := number(f.rules.standard); n != nil {
			target.SetInt(int64(*n))
		}
	case reflect.Bool:
		target.SetBool(f.rules.standard == "true")
	}
}

func (d *decoder) field(v *value, target reflect.Value, path string, f field) {
	if instead, ok := insteadOf(d.doc.Kind, path, ""); ok {
		d.complain(path, "not supported yet", instead)
		return
	}
	cut := 0
	if f.secret {
		cut = -1
	}
	d.value(v, target, path, f.rules, cut)
}

// value reads v into target by target's type.
func (d *decoder) value(v *value, target reflect.Value, path string, r rules, cut int) {
	switch target.Kind() {
	case reflect.Pointer:
		target.Set(reflect.New(target.Type().Elem()))
		d.value(v, target.Elem(), path, r, cut)
	case reflect.Struct:
		d.structure(v, target, path)
	case reflect.Slice:
		d.list(v, target, path, r, cut)
	case reflect.Map:
		d.table(v, target, path)
	case reflect.String:
		d.text(v, target, path, r, cut)
	case reflect.Int:
		d.integer(v, target, path, r)
	case reflect.Bool:
		d.boolean(v, target, path)
	case reflect.Interface:
		target.Set(reflect.ValueOf(d.free(v, path)))
	}
}

// shaped gives v if it has the shape, the parsed text of a --set if that has, else nil
// with a complaint. Nil stays nil.
func (d *decoder) shaped(v *value, want shape, path string) *value {
	if v == nil || v.shape == want {
		return v
	}
	got := v
	if v.shape == shapeFlag {
		got = d.parseFlag(v, path)
		if got == nil || got.shape == want {
			return got
		}
	}
	d.complain(path, fmt.Sprintf("must be %s, but is %s", want, got.shape), "")
	return nil
}

func (d *decoder) list(v *value, target reflect.Value, path string, r rules, cut int) {
	_, single := target.Interface().(interface{ single() })
	if v.shape == shapeFlag && (!single || strings.HasPrefix(v.text, "[")) {
		v = d.shaped(v, shapeSequence, path)
	}
	if v != nil && single && v.shape != shapeSequence {
		item := reflect.New(target.Type().Elem()).Elem()
		d.value(v, item, path, rules{}, cut)
		target.Set(reflect.Append(target, item))
		return
	}
	if v = d.shaped(v, shapeSequence, path); v == nil {
		return
	}
	if r.maxItems != nil && len(v.items) > *r.maxItems {
		d.complain(path, fmt.Sprintf("has %d entries", len(v.items)), fmt.Sprintf("at most %d are allowed", *r.maxItems))
		return
	}
	if r.required && len(v.items) == 0 {
		d.complain(path, "is an empty list", "add an entry")
	}
	for i, each := range v.items {
		own := path + "[" + strconv.Itoa(i) + "]"
		d.mark(own, own, each.at)
		item := reflect.New(target.Type().Elem()).Elem()
		if each.shape == shapeNull {
			d.complain(own, "is empty", "give it a value, or remove the entry")
		} else {
			d.value(each, item, own, rules{}, cut)
		}
		target.Set(reflect.Append(target, item))
	}
}

// table reads a map with text keys; its values are text or free.
func (d *decoder) table(v *value, target reflect.Value, path string) {
	if v = d.shaped(v, shapeMapping, path); v == nil {
		return
	}
	target.Set(reflect.MakeMap(target.Type()))
	for _, e := range v.entries {
		own := join(path, e.key)
		d.mark(own, own, e.at)
		item := reflect.New(target.Type().Elem()).Elem()
		if e.value.shape != shapeNull {
			d.value(e.value, item, own, rules{}, 0)
		}
		target.SetMapIndex(reflect.ValueOf(e.key), item)
	}
}

// unknown reports a key that no field has: what it may have meant, or that it is known
// but not built yet.
func (d *decoder) unknown(e entry, path, near string, fields []field) {
	own := join(path, e.key)
	if instead, ok := insteadOf(d.doc.Kind, own, ""); ok {
		d.report(issue{at: e.at, path: own, message: "not supported yet", next: instead})
		return
	}
	i := issue{at: e.at, path: own, message: "unknown field", next: "known here: " + strings.Join(firstNames(fields), ", ")}
	switch {
	case path == "" && slices.Contains(d.specFields, e.key):
		i.next = "did you mean spec." + e.key + "?"
	case near != "":
		i.next = "did you mean " + near + "?"
	}
	if d.opts.Lenient {
		d.out.warn(d.name, i)
		return
	}
	d.report(i)
}

func firstNames(fields []field) []string {
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = f.name
	}
	return names
}
