package playbook

import (
	"encoding/base64"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/stretchr/testify/require"

	"burrow.dev/burrow/test/lab"
)

// Roles install packages.
func TestMain(m *testing.M) { lab.Main(m, lab.Internet) }

func TestQuickstartCarriesTheRoleThatShips(t *testing.T) {
	require.Equal(t, contents(t, "."), contents(t, "../examples/quickstart/playbook"))
}

// contents reads the quickstart's playbook, inventory and role below dir.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	got := map[string]string{}
	require.NoError(t, fs.WalkDir(os.DirFS(dir), ".", func(p string, d fs.DirEntry, err error) error {
		shared := strings.HasPrefix(p, "roles/mysql/") || p == "mysql-setup.yaml" || p == "hosts.yaml"
		if err != nil || d.IsDir() || !shared {
			return err
		}
		text, err := os.ReadFile(filepath.Join(dir, p))
		got[p] = string(text)
		return err
	}))
	return got
}

// playbooks are the files that ship, without the inventory.
func playbooks(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("*.yaml")
	require.NoError(t, err)
	files = slices.DeleteFunc(files, func(f string) bool { return f == "hosts.yaml" })
	require.Len(t, files, 7)
	return files
}

func TestShippedPlaybooksAreValid(t *testing.T) {
	args := append([]string{"-i", "hosts.yaml", "--syntax-check"}, playbooks(t)...)
	out, err := exec.Command("ansible-playbook", args...).CombinedOutput()
	require.NoError(t, err, string(out))
}

func TestEveryPlaybookHasItsLine(t *testing.T) {
	for _, page := range []string{"README.md", "../docs/playbooks.md"} {
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		for _, file := range playbooks(t) {
			require.Contains(t, string(text), "| `"+file+"` |", page)
		}
	}
}

func TestEveryRoleNamesItsVariables(t *testing.T) {
	roles, err := filepath.Glob("roles/*")
	require.NoError(t, err)
	require.Len(t, roles, 7)
	for _, role := range roles {
		t.Run(filepath.Base(role), func(t *testing.T) {
			var specs struct {
				Of struct {
					Main struct {
						Options map[string]any `yaml:"options"`
					} `yaml:"main"`
				} `yaml:"argument_specs"`
			}
			var defaults map[string]any
			read(t, filepath.Join(role, "meta", "argument_specs.yml"), &specs)
			read(t, filepath.Join(role, "defaults", "main.yml"), &defaults)
			readme, err := os.ReadFile(filepath.Join(role, "README.md"))
			require.NoError(t, err)
			require.NotEmpty(t, defaults)
			require.Len(t, specs.Of.Main.Options, len(defaults))
			for name := range defaults {
				require.Contains(t, specs.Of.Main.Options, name)
				require.Contains(t, string(readme), "`"+name+"`")
			}
		})
	}
}

func read(t *testing.T, file string, into any) {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NoError(t, yaml.Unmarshal(text, into), file)
}

func TestAWrongVariableIsToldBeforeAnythingIsDone(t *testing.T) {
	cases := []struct{ playbook, vars, told string }{
		{"base.yaml", `{"base_users": [{"nme": "ada"}]}`, "missing required arguments: name found in base_users"},
		{"base.yaml", `{"base_users": [{"name": "root", "state": "absent"}]}`, "base_users takes away root"},
		{"haproxy.yaml", `{"haproxy_group": "label_role_none"}`, "no host is in the group label_role_none"},
		{"k3s.yaml", `{"k3s_server_group": "label_role_web"}`, "odd number of servers"},
	}
	for _, c := range cases {
		cmd := exec.Command("ansible-playbook", "-i", "testdata/fleet.yaml", "-e", c.vars, c.playbook)
		cmd.Env = append(os.Environ(), "ANSIBLE_NOCOLOR=1", "ANSIBLE_HOME="+t.TempDir())
		out, err := cmd.CombinedOutput()
		require.Error(t, err, "%s %s: %s", c.playbook, c.vars, out)
		require.Contains(t, string(out), c.told)
		require.Contains(t, string(out), "changed=0")
	}
}

func TestTheFirstServerMakesTheClusterAndTheOthersJoin(t *testing.T) {
	cmd := exec.Command("ansible", "-i", "testdata/cluster.yaml", "all", "-m", "ansible.builtin.debug", "-a", "msg={{ k3s_unit }}:{{ k3s_config | to_json | b64encode }}",
		"-e", "@roles/k3s/defaults/main.yml", "-e", "@roles/k3s/vars/main.yml")
	cmd.Env = append(os.Environ(), "ANSIBLE_NOCOLOR=1", "ANSIBLE_HOME="+t.TempDir())
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	got := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^(\w) \| SUCCESS => \{\n\s+"msg": "([^:]+):([^"]+)"`).FindAllStringSubmatch(string(out), -1) {
		config, err := base64.StdEncoding.DecodeString(m[3])
		require.NoError(t, err)
		got[m[1]] = m[2] + " " + string(config)
	}
	joins := `"server": "https://192.0.2.1:6443", "token-file": "/etc/rancher/k3s/token"}`
	require.Equal(t, map[string]string{
		"a": `k3s {"node-name": "a", "node-ip": "192.0.2.1", "cluster-init": true}`,
		"b": `k3s {"node-name": "b", "node-ip": "192.0.2.2", ` + joins,
		"c": `k3s {"node-name": "c", "node-ip": "2001:db8::3", ` + joins,
		"d": `k3s-agent {"node-name": "d", "node-ip": "192.0.2.4", ` + joins,
	}, got)
}
