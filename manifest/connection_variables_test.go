package manifest

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestHowAServerIsReachedIsNotForExtraVars(t *testing.T) {
	const fields = "extraVars: {port: 22, ansible_ssh_user: root, ansible_host: 192.0.2.1}\n"
	for _, text := range []string{playbookText(fields), serverText("ansible:\n" + indent("playbook: site.yaml\n"+fields))} {
		_, problems := loadText(t, text, Options{})
		require.ErrorContains(t, problems.Err(), "extraVars: ansible_host says how a server is reached")
	}
	require.ErrorContains(t, CheckConnection(map[string]any{"ansible_timeout": 3}), "ansible_timeout")
	require.NoError(t, CheckConnection(map[string]any{"ansible_become": true, "ansible_python_interpreter": "/usr/bin/python3"}))
}
