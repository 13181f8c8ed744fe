// Package manifest is the vocabulary: the kinds users declare, their strict
// decoding from YAML, defaults, validation with file, line and column, and their
// JSON Schema. It also holds the record, which is what burrow keeps of them.
//
//	source (file, folder, URL, "-")
//	   │ read       bounded size                               source.go
//	   ▼
//	tokens ─▶ AST   depth and key limits before parsing        parse.go
//	   │ resolve    anchors, aliases, merge keys: a graph,      tree.go
//	   ▼            never expanded; its expansion is counted
//	tree ◀── --set  typed by the field it lands on             override.go
//	   │ decode     into the input structs; their tags are      decode.go, input.go
//	   ▼            the rules, and the JSON Schema              schema.go
//	Document        normal form                                 server.go, network.go, …
//	   │ validate   references, addresses, cycles, files        validate_*.go
//	   ▼
//	Set
//
// Every stage adds to one list of problems and goes on, so that a user sees all of
// them at once. A field that could not be read is marked, and later stages leave it alone.
//
// After decoding every spec is in its normal form: lists where a single value was
// allowed, sizes as integers (MiB for memory, GiB for disks), aliases replaced,
// defaults filled. The JSON of a spec is its normal form and is stable.
package manifest
