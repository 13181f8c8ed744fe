// Package docs_test holds the documentation to what is there: manifests that are read,
// links that lead somewhere, and tests that exist.
package docs_test

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"burrow.dev/burrow/manifest"
)

const root = ".."

// pages are the Markdown files for users, by path from here.
func pages(t *testing.T) map[string]string {
	t.Helper()
	text := map[string]string{}
	for _, pattern := range []string{"*.md", "*/*.md", "../*.md"} {
		files, err := filepath.Glob(pattern)
		require.NoError(t, err)
		for _, file := range files {
			content, err := os.ReadFile(file)
			require.NoError(t, err)
			text[file] = string(content)
		}
	}
	require.Greater(t, len(text), 15)
	return text
}

var yamlBlock = regexp.MustCompile("(?s)```yaml\n(.*?)```")

func TestManifestsInThePagesAreRead(t *testing.T) {
	read := 0
	for file, text := range pages(t) {
		for _, block := range yamlBlock.FindAllStringSubmatch(text, -1) {
			if !strings.Contains(block[1], "apiVersion:") {
				continue // a part of one
			}
			_, problems := manifest.Load(t.Context(), []string{"-"}, manifest.Options{Stdin: strings.NewReader(block[1])})
			require.NoError(t, problems.Err(), file)
			read++
		}
	}
	require.Positive(t, read)
}

func TestTheManifestPageNamesEveryKey(t *testing.T) {
	page, err := os.ReadFile("manifest.md")
	require.NoError(t, err)
	words := regexp.MustCompile(`[A-Za-z0-9_-]+`).FindAllString(strings.Join(regexp.MustCompile("`[^`]+`").FindAllString(string(page), -1), " "), -1)
	for _, kind := range manifest.Kinds() {
		text, err := manifest.Schema(kind)
		require.NoError(t, err)
		var schema any
		require.NoError(t, json.Unmarshal(text, &schema))
		for _, key := range keys(schema) {
			require.Contains(t, words, key, kind)
		}
	}
}

// keys are the names under every "properties" of a JSON Schema.
func keys(schema any) []string {
	var all []string
	switch node := schema.(type) {
	case map[string]any:
		if properties, ok := node["properties"].(map[string]any); ok {
			for key := range properties {
				all = append(all, key)
			}
		}
		for _, child := range node {
			all = append(all, keys(child)...)
		}
	case []any:
		for _, child := range node {
			all = append(all, keys(child)...)
		}
	}
	return all
}

var link = regexp.MustCompile(`\]\(([^)\s]+)\)`)

func TestLinksOfThePagesLeadSomewhere(t *testing.T) {
	text := pages(t)
	for file, content := range text {
		for _, found := range link.FindAllStringSubmatch(content, -1) {
			target, anchor, _ := strings.Cut(found[1], "#")
			if strings.Contains(target, "://") {
				continue
			}
			path := file
			if target != "" {
				path = filepath.Join(filepath.Dir(file), target)
				require.FileExists(t, existing(path), "%s → %s", file, found[1])
			}
			if anchor != "" {
				require.Contains(t, anchors(text[path]), anchor, "%s → %s", file, found[1])
			}
		}
	}
}

// existing gives the path itself, or for a folder a file in it.
func existing(path string) string {
	entries, err := os.ReadDir(path)
	if err != nil {
		return path
	}
	for _, e := range entries {
		if e.Type().IsRegular() {
			return filepath.Join(path, e.Name())
		}
	}
	return path
}

var notInAnchors = regexp.MustCompile(`[^\p{L}\p{N} _-]`)

// anchors are those that a page's headings get.
func anchors(text string) []string {
	var all []string
	for line := range strings.Lines(text) {
		if title, ok := strings.CutPrefix(strings.TrimLeft(line, "#"), " "); ok && strings.HasPrefix(line, "#") {
			name := notInAnchors.ReplaceAllString(strings.ToLower(strings.TrimSpace(title)), "")
			all = append(all, strings.ReplaceAll(name, " ", "-"))
		}
	}
	return all
}

var testName = regexp.MustCompile("`(Test[A-Za-z0-9]+)`")

func TestTestsThatThePagesNameExist(t *testing.T) {
	var code strings.Builder
	require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		content, err := os.ReadFile(path)
		code.Write(content)
		return err
	}))
	all := code.String()
	for file, text := range pages(t) {
		for _, found := range testName.FindAllStringSubmatch(text, -1) {
			require.Contains(t, all, "func "+found[1]+"(", file)
		}
	}
}
