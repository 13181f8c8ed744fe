package ansiblex

import (
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"burrow.dev/burrow/manifest"
)

var update = flag.Bool("update", false, "write golden files")

const hostKey = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIKCtWEjlnVnnSc6tcos/iQfXAf06/jqSc5eAMtNGogyV\n"

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(path, got, 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), string(got))
}

var twoHosts = []Host{
	{
		Name: "db", UID: "6f9619ff-8b86-4011-b42d-00c04fc964ff", Address: "172.16.90.2", Login: "debian", HostKeys: []string{hostKey},
		Labels: map[string]string{"role": "db", "app.kubernetes.io/name": "{{ evil }}"}, Networks: []string{"host-bridge", "db-net"}, Image: "ubuntu24.04",
	},
	{Name: "web-1", UID: "7a", Address: "fd00::2", Login: "alpine", HostKeys: []string{hostKey}, Labels: map[string]string{"role": "web"}, Networks: []string{"db-net"}},
}

func TestInventory(t *testing.T) {
	f := &Folder{ID: "r", Dir: "/var/lib/burrow/runs/20260102-150405-1f3a"}
	got, err := f.inventory(twoHosts, "/usr/bin/burrow")
	require.NoError(t, err)
	golden(t, "inventory.yaml", got)
	known, err := knownHosts(twoHosts)
	require.NoError(t, err)
	golden(t, "known_hosts", known)
}

func TestAnsibleReadsTheInventory(t *testing.T) {
	f := &Folder{ID: "r", Dir: "/var/lib/burrow/runs/20260102-150405-1f3a"}
	data, err := f.inventory(twoHosts, "/usr/bin/burrow")
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "burrow.yaml")
	require.NoError(t, os.WriteFile(path, data, 0o600))
	cmd := exec.Command("ansible-inventory", "-i", path, "--list")
	cmd.Env = append(os.Environ(), "ANSIBLE_HOME="+t.TempDir(), "ANSIBLE_INVENTORY_ANY_UNPARSED_IS_FAILED=1")
	out, err := cmd.Output()
	require.NoError(t, err)
	var groups map[string]struct {
		Hosts []string `json:"hosts"`
	}
	require.NoError(t, json.Unmarshal(out, &groups))
	require.ElementsMatch(t, []string{"db", "web-1"}, groups["network_db_net"].Hosts)
	require.Equal(t, []string{"db"}, groups["label_role_db"].Hosts)
	require.Equal(t, []string{"db"}, groups["image_ubuntu24_04"].Hosts)
	require.Equal(t, []string{"web-1"}, groups["label_role_web"].Hosts)
	require.ElementsMatch(t, []string{"db", "web-1"}, groups["burrow"].Hosts)
}

func TestControlPathsAreByServerAndRun(t *testing.T) {
	f := &Folder{ID: "r", Dir: "/var/lib/burrow/runs/20260102-150405-1f3a"}
	one, two := twoHosts[0], twoHosts[1]
	two.Address = one.Address
	require.NotEqual(t, f.controlPath(one), f.controlPath(two))
	require.Less(t, len(f.controlPath(one))+17, 108, "a unix socket's path")
}

func TestEveryVariableOfTheConnectionIsRefusedFromUsers(t *testing.T) {
	for name := range (&Folder{}).connection(Host{}, "") {
		require.Equal(t, name != "ansible_python_interpreter", manifest.ConnectionVariable(name), name)
	}
}
