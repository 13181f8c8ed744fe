package manifest

import (
	"fmt"
	"maps"
	"slices"
)

// SecretNames lists the secrets that a run of a playbook needs, sorted.
func (a Ansible) SecretNames() []string {
	var names []string
	for _, text := range []string{a.VaultPassword, a.BecomePassword} {
		if name, ok := SecretName(text); ok {
			names = append(names, name)
		}
	}
	eachSecret("", a.ExtraVars, func(_, name string) { names = append(names, name) })
	slices.Sort(names)
	return slices.Compact(names)
}

// CheckSecretNames refuses variables with a text secret:NAME whose NAME cannot be one. The
// error names the variable, and shows nothing of the text.
func CheckSecretNames(vars map[string]any) (err error) {
	eachSecret("", vars, func(path, name string) {
		if bad := CheckSecretName(name); bad != nil && err == nil {
			err = fmt.Errorf("%s names no secret: %w", path[1:], bad)
		}
	})
	return err
}

// eachSecret visits every text secret:NAME in a value of a manifest, in the order of keys.
func eachSecret(path string, value any, visit func(path, name string)) {
	switch v := value.(type) {
	case string:
		if name, ok := SecretName(v); ok {
			visit(path, name)
		}
	case []any:
		for i, item := range v {
			eachSecret(fmt.Sprintf("%s[%d]", path, i), item, visit)
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			eachSecret(path+"."+key, v[key], visit)
		}
	}
}

// secretName refuses what is not secret:NAME. It may be a password, so nothing of it is shown.
func (d *decoder) secretName(path, text string) {
	if text == "" || !d.doc.sound(path) {
		return
	}
	const next = "write secret:NAME, and set it: burrow secret set NAME"
	name, ok := SecretName(text)
	if !ok {
		d.complainCut(path, -1, "does not name a secret", next)
		return
	}
	if err := CheckSecretName(name); err != nil {
		d.complainCut(path, -1, "names no secret: "+err.Error(), next)
	}
}

// secretNames looks at every text secret:NAME in variables.
func (d *decoder) secretNames(path string, vars map[string]any) {
	eachSecret(path, vars, func(path, name string) { d.secretName(path, SecretPrefix+name) })
}
