package ansiblex

import "regexp"

const (
	hiddenText    = "***"
	encryptedText = "(encrypted by ansible-vault)"
	ansibleVault  = "__ansible_vault" // the key that Ansible's JSON has what is encrypted under
)

// secretByName matches names under which people keep what nobody should read. The path of a
// key or the name of a command is none.
var secretByName = regexp.MustCompile(`(?i)(pass(word|wd|phrase)?|secret|token|credential|private_key|api_?key)s?$`)

// shown gives a variable's value for people: no secret by its name, no mark of Ansible's,
// and paths as the user knows them.
func (f *Folder) shown(name string, value any) any {
	if secretByName.MatchString(name) && value != nil && value != "" {
		return hiddenText
	}
	switch v := value.(type) {
	case string:
		return f.hidePaths(v)
	case map[string]any:
		if text, ok := v[ansibleUnsafe].(string); ok && len(v) == 1 {
			return f.hidePaths(text)
		}
		if _, ok := v[ansibleVault]; ok {
			return encryptedText
		}
		out := make(map[string]any, len(v))
		for key, item := range v {
			out[key] = f.shown(key, item)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = f.shown(name, item)
		}
		return out
	}
	return value
}
