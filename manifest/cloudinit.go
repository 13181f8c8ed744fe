package manifest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// userDataHeaders are the first lines by which cloud-init tells what user data is; it
// ignores what has none.
var userDataHeaders = []string{
	"#cloud-config", "#!", "#include", "#cloud-boothook", "#part-handler", "## template: jinja", "Content-Type: multipart/", "MIME-Version:",
}

// cloudInit reads files in and checks what cloud-init would otherwise ignore in silence.
func (d *decoder) cloudInit(in *cloudInitInput) *CloudInit {
	if in == nil || in.UserData == "" && in.NetworkConfig == "" {
		return nil
	}
	out := &CloudInit{
		UserData:      d.inline("spec.cloudInit.userData", in.UserData),
		NetworkConfig: d.inline("spec.cloudInit.networkConfig", in.NetworkConfig),
	}
	d.userData("spec.cloudInit.userData", out.UserData)
	if out.NetworkConfig != "" {
		d.yamlMapping("spec.cloudInit.networkConfig", out.NetworkConfig)
	}
	return out
}

// inline gives the text of a field, or of the file that it names.
func (d *decoder) inline(path, text string) string {
	name, fromFile := strings.CutPrefix(text, "file:")
	if !fromFile || !d.doc.sound(path) {
		return text
	}
	data, err := d.readBeside(strings.TrimSpace(name))
	if err != nil {
		d.complain(path, fmt.Sprintf("read %s: %v", quote(name), err), "name a file beside the manifest")
		return ""
	}
	return string(data)
}

func (d *decoder) userData(path, text string) {
	if text == "" || !d.doc.sound(path) {
		return
	}
	known := slices.ContainsFunc(userDataHeaders, func(header string) bool { return strings.HasPrefix(text, header) })
	switch {
	case !known:
		d.complainCut(path, -1, "cloud-init would ignore it: its first line does not say what it is", "begin with #cloud-config, or with #! for a script")
	case strings.HasPrefix(text, "#cloud-config"):
		d.yamlMapping(path, text)
	}
}

// yamlMapping checks text that must be one YAML mapping, under the limits of a manifest.
// What it says never quotes the text, which may hold passwords.
func (d *decoder) yamlMapping(path, text string) {
	if !d.doc.sound(path) {
		return
	}
	src := &source{name: path, text: []byte(text)}
	bodies, err := parse(src)
	if err != nil {
		line := 1
		if syntax, ok := err.(*syntaxError); ok {
			line = max(line, syntax.at.line)
		}
		d.complainCut(path, -1, fmt.Sprintf("line %d of its text is not valid YAML", line), "")
		return
	}
	if len(bodies) == 0 {
		return // a comment only
	}
	var trouble string
	r := resolver{source: src, report: func(at position, key, message, _ string) {
		if trouble == "" {
			trouble = fmt.Sprintf("line %d of its text: %s %s", at.line, key, message)
		}
	}}
	tree := r.resolve(bodies[0])
	switch {
	case trouble != "":
		d.complainCut(path, -1, trouble, "")
	case len(bodies) > 1 || tree.shape != shapeMapping:
		d.complainCut(path, -1, "its text is not one YAML mapping", "")
	}
}

// knownHash is the root password's hash of the server as it is, or "".
func (d *decoder) knownHash() string {
	if d.opts.Known == nil {
		return ""
	}
	record, ok := d.opts.Known.Lookup(KindServer, d.doc.Metadata.Name)
	if !ok {
		return ""
	}
	var spec ServerSpec
	if json.Unmarshal(record.Spec, &spec) != nil {
		return ""
	}
	return spec.Auth.RootPassword
}
