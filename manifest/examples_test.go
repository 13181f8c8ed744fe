package manifest

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"
)

const examplesDir = "../examples"

// exampleFiles are the manifests under examples/, without the playbooks' folders.
func exampleFiles(t *testing.T) []string {
	var files []string
	require.NoError(t, filepath.WalkDir(examplesDir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() && entry.Name() == "playbook" {
			return fs.SkipDir
		}
		if err == nil && filepath.Ext(path) == ".yaml" {
			files = append(files, path)
		}
		return err
	}))
	require.NotEmpty(t, files)
	return files
}

func TestExamplesValidateWithoutAMessage(t *testing.T) {
	for _, file := range exampleFiles(t) {
		t.Run(file, func(t *testing.T) {
			set, problems := Check(t.Context(), []string{file}, Options{}, world())
			require.NoError(t, problems.Err())
			require.Empty(t, set.Warnings)
		})
	}
}

func TestExamplesNameTheirSchemaForEditors(t *testing.T) {
	for _, file := range exampleFiles(t) {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Contains(t, string(text), "# yaml-language-server: $schema=", file)
	}
}

func TestExamplesAndValidCasesMeetTheirSchema(t *testing.T) {
	files := exampleFiles(t)
	cases, err := filepath.Glob("testdata/cases/valid/*.yaml")
	require.NoError(t, err)
	for _, file := range append(files, cases...) {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		decoder := yaml.NewDecoder(bytes.NewReader(text))
		for {
			var doc map[string]any
			if decoder.Decode(&doc) != nil {
				break
			}
			require.NoError(t, meetsSchema(t, doc), file)
		}
	}
}

func TestSchemaRefusesWhatTheDecoderRefuses(t *testing.T) {
	for name, text := range map[string]string{
		"unknown field":        "{apiVersion: v1, kind: Server, metadata: {name: a}, spec: {networkInterfaces: []}}",
		"too few cpus":         "{apiVersion: v1, kind: Server, metadata: {name: a}, spec: {cpu: 0}}",
		"no name":              "{apiVersion: v1, kind: Server, metadata: {}, spec: {}}",
		"size without meaning": "{apiVersion: v1, kind: Server, metadata: {name: a}, spec: {memory: much}}",
		"not built yet":        "{apiVersion: v1, kind: Server, metadata: {name: a}, spec: {count: 3}}",
		"unknown mode":         "{apiVersion: v1, kind: Network, metadata: {name: a}, spec: {mode: open}}",
		"volume without size":  "{apiVersion: v1, kind: Volume, metadata: {name: a}, spec: {type: raw}}",
	} {
		t.Run(name, func(t *testing.T) {
			var doc map[string]any
			require.NoError(t, yaml.Unmarshal([]byte(text), &doc))
			require.Error(t, meetsSchema(t, doc))
			_, problems := loadText(t, text, Options{})
			require.NotEmpty(t, problems)
		})
	}
}

// The committed schemas are what editors fetch; they are made by `go test -update`.
func TestCommittedSchemasAreCurrent(t *testing.T) {
	for _, kind := range Kinds() {
		schema, err := Schema(kind)
		require.NoError(t, err)
		golden(t, filepath.Join("..", "docs", "schema", kind.Word()+".json"), strings.TrimSuffix(string(schema), "\n"))
	}
	_, err := Schema(KindSecurityGroup)
	require.ErrorContains(t, err, "Server")
}

func meetsSchema(t *testing.T, doc map[string]any) error {
	t.Helper()
	kind := Kind(doc["kind"].(string))
	if kind == "VirtualNetwork" {
		kind = KindNetwork
	}
	text, err := Schema(kind)
	require.NoError(t, err)
	schema, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	require.NoError(t, err)
	compiler := jsonschema.NewCompiler()
	require.NoError(t, compiler.AddResource("kind.json", schema))
	compiled, err := compiler.Compile("kind.json")
	require.NoError(t, err)
	data, err := json.Marshal(doc)
	require.NoError(t, err)
	instance, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	require.NoError(t, err)
	return compiled.Validate(instance)
}

// loadText checks one manifest from standard input in an empty folder.
func loadText(t *testing.T, text string, opts Options) (*Set, Problems) {
	t.Helper()
	opts.Stdin = strings.NewReader(text)
	if opts.WorkDir == "" {
		opts.WorkDir = t.TempDir()
	}
	return Check(t.Context(), []string{"-"}, opts, world())
}
