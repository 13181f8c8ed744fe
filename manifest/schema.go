package manifest

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"github.com/invopop/jsonschema"
)

// Schema gives the JSON Schema (draft 2020-12) of a kind, for editors. It is made from
// the input structs, whose tags are also what the decoder enforces.
func Schema(kind Kind) ([]byte, error) {
	inputs := map[Kind]any{
		KindServer: input[serverInput]{}, KindNetwork: input[networkInput]{},
		KindVolume: input[volumeInput]{}, KindImage: input[imageInput]{},
		KindPlaybook: input[playbookInput]{},
	}
	in, ok := inputs[kind]
	if !ok {
		return nil, fmt.Errorf("%s has no schema; say one of %s", quote(string(kind)), alternatives(kindNames()))
	}
	reflector := jsonschema.Reflector{
		Anonymous: true, DoNotReference: true, ExpandedStruct: true, RequiredFromJSONSchemaTags: true, Mapper: mapType,
	}
	schema := reflector.Reflect(in)
	schema.Title = "Burrow " + string(kind)
	own, ok := schema.Properties.Get("kind")
	if !ok {
		return nil, fmt.Errorf("schema of %s has no kind", kind)
	}
	own.Enum = []any{string(kind)}
	if kind == KindNetwork {
		own.Enum = append(own.Enum, "VirtualNetwork")
	}
	addAliases(schema, reflect.TypeOf(in))
	data, err := json.MarshalIndent(schema, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("write schema of %s: %w", kind, err)
	}
	return append(data, '\n'), nil
}

// mapType gives the schema of types that may be written in more than one way.
func mapType(t reflect.Type) *jsonschema.Schema {
	if _, ok := reflect.Zero(t).Interface().(sized); ok {
		return &jsonschema.Schema{OneOf: []*jsonschema.Schema{
			{Type: "integer"}, {Type: "string", Pattern: sizePattern.String()},
		}}
	}
	if _, ok := reflect.Zero(t).Interface().(interface{ single() }); ok {
		item := &jsonschema.Schema{Type: "string"}
		if t.Elem().Kind() == reflect.Int {
			item = &jsonschema.Schema{Type: "integer"}
		}
		return &jsonschema.Schema{OneOf: []*jsonschema.Schema{item, {Type: "array", Items: item}}}
	}
	return nil
}

// addAliases lets the other names of fields pass; a required field with one is none here.
func addAliases(schema *jsonschema.Schema, t reflect.Type) {
	if schema == nil || schema.Properties == nil {
		return
	}
	for _, f := range fieldsOf(t) {
		own, ok := schema.Properties.Get(f.name)
		if !ok {
			continue
		}
		for _, alias := range f.aliases {
			schema.Properties.Set(alias, &jsonschema.Schema{Type: own.Type, Description: "Another name of " + f.name + "."})
		}
		for _, old := range f.deprecated {
			schema.Properties.Set(old, &jsonschema.Schema{Type: own.Type, Deprecated: true, Description: "Deprecated; write " + f.name + "."})
		}
		inner := t.FieldByIndex(f.index).Type
		for inner.Kind() == reflect.Pointer || inner.Kind() == reflect.Slice && inner.Elem().Kind() == reflect.Struct {
			inner = inner.Elem()
			if own.Items != nil {
				own = own.Items
			}
		}
		if inner.Kind() == reflect.Struct && !strings.Contains(own.Ref, "#") {
			addAliases(own, inner)
		}
	}
}
