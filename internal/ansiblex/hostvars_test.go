package ansiblex

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// tree writes files below a new folder; "→x" is a symlink to x.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		if len(text) > 3 && text[:3] == "→" {
			require.NoError(t, os.Symlink(text[3:], path))
			continue
		}
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	return dir
}

// resolved is what Ansible itself makes of a host's variables.
func resolved(t *testing.T, dir, playbookDir string, sources ...string) map[string]any {
	t.Helper()
	args := []string{"--host", "db", "--playbook-dir", filepath.Join(dir, playbookDir)}
	for _, s := range sources {
		args = append(args, "-i", filepath.Join(dir, s))
	}
	cmd := exec.Command("ansible-inventory", args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "ANSIBLE_HOME="+t.TempDir())
	out, err := cmd.Output()
	require.NoError(t, err)
	var vars map[string]any
	require.NoError(t, json.Unmarshal(out, &vars), string(out))
	return vars
}

func TestOurVariablesWinAndTheUsersStay(t *testing.T) {
	inventory := "all: {vars: {ansible_ssh_user: group, theirs: inventory}, hosts: {db: {ansible_host: inline, ansible_ssh_host: inline, theirs: inline}}}\n"
	cases := map[string]struct {
		files       map[string]string
		playbookDir string
		theirs      string
	}{
		"nothing beside":                {nil, ".", "inline"},
		"a .yml file":                   {map[string]string{"host_vars/db.yml": "{theirs: yml, ansible_ssh_host: x}"}, ".", "yml"},
		"a .yaml file":                  {map[string]string{"host_vars/db.yaml": "{theirs: yaml}"}, ".", "yaml"},
		"a .json file":                  {map[string]string{"host_vars/db.json": `{"theirs": "json"}`}, ".", "json"},
		"a file without extension":      {map[string]string{"host_vars/db": "{theirs: bare, ansible_user: x}"}, ".", "bare"},
		"a folder":                      {map[string]string{"host_vars/db/a.yml": "{theirs: folder}", "host_vars/db/zz.yml": "{ansible_host: x}"}, ".", "folder"},
		"a folder hides a file":         {map[string]string{"host_vars/db/a.yml": "{theirs: folder}", "host_vars/db.yml": "{theirs: hidden}"}, ".", "folder"},
		"a name that sorts after ours":  {map[string]string{"host_vars/db/~~.yml": "{ansible_host: x}", "host_vars/db/é.yml": "{ansible_user: x, theirs: late}"}, ".", "late"},
		"a folder inside the folder":    {map[string]string{"host_vars/db/~~z/a.yml": "{ansible_host: x, theirs: deep}"}, ".", "deep"},
		"a symlink to a shared folder":  {map[string]string{"host_vars/common/a.yml": "{theirs: shared}", "host_vars/db": "→common"}, ".", "shared"},
		"a symlink to a file":           {map[string]string{"shared.yml": "{theirs: linked}", "host_vars/db.yml": "→../shared.yml"}, ".", "linked"},
		"host_vars itself is a symlink": {map[string]string{"inv/host_vars/db.yml": "{theirs: elsewhere}", "host_vars": "→inv/host_vars"}, ".", "elsewhere"},
		"a playbook in a subfolder":     {map[string]string{"plays/host_vars/db.yml": "{theirs: sub}", "host_vars/db.yml": "{theirs: top, ansible_host: x}"}, "plays", "sub"},
		"group_vars beside both":        {map[string]string{"group_vars/all.yml": "{theirs: g, ansible_ssh_host: g, ansible_connection: local}"}, ".", "inline"},
	}
	f := &Folder{ID: "r", Dir: "/run-folder"}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			files := map[string]string{"hosts.yaml": inventory, "plays/x": ""}
			for k, v := range c.files {
				files[k] = v
			}
			dir := tree(t, files)
			root, err := os.OpenRoot(dir)
			require.NoError(t, err)
			defer root.Close()
			ours := f.connection(Host{Name: "db", UID: "0123456789", Address: "172.16.90.2", Login: "debian"}, "/usr/bin/burrow")
			require.NoError(t, hostVars(root, c.playbookDir, "db", ours))
			vars := resolved(t, dir, c.playbookDir, "hosts.yaml")
			for k, v := range ours {
				require.EqualValues(t, v, vars[k], k)
			}
			require.Equal(t, c.theirs, vars["theirs"])
			if _, shared := c.files["host_vars/common/a.yml"]; shared {
				entries, err := os.ReadDir(filepath.Join(dir, "host_vars/common"))
				require.NoError(t, err)
				require.Len(t, entries, 1, "another host's variables are touched")
			}
		})
	}
}
