package ansiblex

import (
	"regexp"
	"slices"
	"strings"
)

// groupOfAll is the group that every server is in.
const groupOfAll = "burrow"

// facts are the variables that say what h is. How it is reached is none of them.
func (h Host) facts() map[string]any {
	vars := map[string]any{
		"burrow_server": h.Name, "burrow_uid": h.UID, "burrow_address": h.Address, "burrow_image": AsData(h.Image),
		"burrow_networks": append([]string{}, h.Networks...), // [], never null: playbooks look for names in it
	}
	labels := make(map[string]any, len(h.Labels))
	for key, value := range h.Labels {
		labels[key] = AsData(value)
	}
	vars["burrow_labels"] = labels
	if len(h.Addresses) > 0 {
		vars["burrow_addresses"] = h.Addresses
	}
	if h.Hypervisor != "" {
		vars["burrow_host"] = h.Hypervisor
	}
	if h.Phase != "" {
		vars["burrow_phase"] = h.Phase
	}
	return vars
}

// jinja is what begins an expression, a statement or a comment of a template.
var jinja = regexp.MustCompile(`{[{%#]`)

// ansibleUnsafe is the key that Ansible's JSON decoder knows a marked text by.
const ansibleUnsafe = "__ansible_unsafe"

// AsData marks text that Ansible would take for a template: from JSON it takes the mark
// for "unsafe", and never evaluates it. Other text stays as it is, for people to read.
func AsData(text string) any {
	if !jinja.MatchString(text) {
		return text
	}
	return map[string]string{ansibleUnsafe: text}
}

// groups names the groups of a server: "label_role_db", "network_db_net", "image_debian12",
// and where that is known "host_kvm1" and "phase_Running".
func (h Host) groups() []string {
	var names []string
	for k, v := range h.Labels {
		names = append(names, groupName("label", k, v))
	}
	for _, n := range h.Networks {
		names = append(names, groupName("network", n))
	}
	for what, value := range map[string]string{"image": h.Image, "host": h.Hypervisor, "phase": h.Phase} {
		if value != "" {
			names = append(names, groupName(what, value))
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// groupName joins parts with "_" and replaces what a group's name may not contain.
func groupName(parts ...string) string {
	return strings.Map(func(r rune) rune {
		if r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '_'
	}, strings.Join(parts, "_"))
}
