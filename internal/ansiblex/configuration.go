package ansiblex

import (
	"bufio"
	"bytes"
	"os"
	"path/filepath"
	"strings"
)

// configuration is what a user's ansible.cfg sets: "section.key" in lower case → value.
type configuration map[string]string

// maxConfiguration bounds the file; Ansible's own full example has 20 KiB.
const maxConfiguration = 256 << 10

// readConfiguration reads the ansible.cfg that Ansible would use in the bundle: that of
// its top, else the one beside the first playbook. path is empty when there is none.
// What cannot be parsed is left to Ansible, which says so.
func readConfiguration(root *os.Root, playbook string) (path string, c configuration) {
	for _, name := range []string{"ansible.cfg", filepath.Join(filepath.Dir(playbook), "ansible.cfg")} {
		data, err := root.ReadFile(name)
		if err != nil || len(data) > maxConfiguration {
			continue
		}
		return filepath.Join(root.Name(), name), parseConfiguration(data)
	}
	return "", configuration{}
}

// parseConfiguration reads the INI dialect of Python's configparser as far as needed:
// sections, "key = value" or "key: value", "#" and ";" comments, indented lines continue.
func parseConfiguration(data []byte) configuration {
	c := configuration{}
	section, last := "", ""
	lines := bufio.NewScanner(bytes.NewReader(data))
	lines.Buffer(nil, maxConfiguration+1)
	for lines.Scan() {
		line := lines.Text()
		trimmed := strings.TrimSpace(line)
		switch {
		case trimmed == "" || trimmed[0] == '#' || trimmed[0] == ';':
		case line[0] == ' ' || line[0] == '\t':
			if last != "" {
				c[last] += "\n" + trimmed
			}
		case trimmed[0] == '[' && strings.HasSuffix(trimmed, "]"):
			section, last = strings.ToLower(trimmed[1:len(trimmed)-1]), ""
		default:
			i := strings.IndexAny(trimmed, "=:")
			if i < 0 {
				last = section + "." + strings.ToLower(trimmed)
				c[last] = ""
				continue
			}
			last = section + "." + strings.ToLower(strings.TrimSpace(trimmed[:i]))
			value, _, _ := strings.Cut(strings.TrimSpace(trimmed[i+1:]), " ;")
			c[last] = strings.TrimSpace(value)
		}
	}
	return c
}

// has reports whether any of the settings is there.
func (c configuration) has(keys ...string) bool {
	for _, k := range keys {
		if _, ok := c[k]; ok {
			return true
		}
	}
	return false
}

// list gives a comma-separated setting, under any of its names.
func (c configuration) list(keys ...string) []string {
	var out []string
	for _, k := range keys {
		for item := range strings.FieldsFuncSeq(c[k], func(r rune) bool { return r == ',' || r == '\n' }) {
			if item = strings.TrimSpace(item); item != "" {
				out = append(out, item)
			}
		}
	}
	return out
}

// paths gives a setting that is a list of paths, separated by ":", relative to the file.
func (c configuration) paths(dir string, key string) []string {
	var out []string
	for item := range strings.SplitSeq(c[key], ":") {
		if item = strings.TrimSpace(item); item == "" {
			continue
		}
		if !filepath.IsAbs(item) && item[0] != '~' && item[0] != '$' {
			item = filepath.Join(dir, item)
		}
		out = append(out, item)
	}
	return out
}

// collections gives the paths of collections, which have two names.
func (c configuration) collections(dir string) []string {
	return append(c.paths(dir, "defaults.collections_path"), c.paths(dir, "defaults.collections_paths")...)
}
