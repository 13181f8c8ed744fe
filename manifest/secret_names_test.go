package manifest

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func playbookText(fields string) string {
	return "apiVersion: v1\nkind: Playbook\nmetadata: {name: p}\nspec:\n  playbook: site.yaml\n  targets: {servers: [a]}\n" + indent(fields)
}

func TestPlaybooksNameSecretsInThreePlaces(t *testing.T) {
	const fields = "vaultPassword: secret:vault\nbecomePassword: secret:sudo\nextraVars: {a: [{b: 'secret:db'}, 1], c: 'no secret:x', d: secret:vault}\n"
	set, problems := loadText(t, playbookText(fields), Options{})
	require.NotContains(t, problems.Error(), "secret")
	require.Equal(t, []string{"db", "sudo", "vault"}, set.Documents[0].Playbook.SecretNames())
	set, problems = loadText(t, serverText("ansible:\n"+indent("playbook: site.yaml\n"+fields)), Options{})
	require.NotContains(t, problems.Error(), "secret")
	require.Equal(t, []string{"db", "sudo", "vault"}, set.Documents[0].Server.Ansible.SecretNames())
}

func TestWhatNamesNoSecretIsRefusedAndNotShown(t *testing.T) {
	for _, fields := range []string{
		"vaultPassword: hunter2", "becomePassword: hunter2", "becomePassword: 'secret:hunter2 x'", "vaultPassword: [hunter2]",
		"extraVars: {a: [{b: 'secret:hunter2/x'}]}",
	} {
		for _, text := range []string{playbookText(fields), serverText("ansible:\n" + indent("playbook: site.yaml\n"+fields))} {
			_, problems := loadText(t, text, Options{})
			require.Regexp(t, `(vaultPassword|becomePassword|extraVars\.a\[0\]\.b): (must be text|does not name a secret|names no secret)`, problems.Error())
			require.NotContains(t, problems.Error(), "hunter2", text)
		}
	}
	require.EqualError(t, CheckSecretNames(map[string]any{"a": []any{map[string]any{"b": "secret:"}}}), "a[0].b names no secret: a secret needs a name")
	require.NoError(t, CheckSecretNames(map[string]any{"a": "secret:b", "c": nil}))
}
