package ansiblex

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestAnsibleTakesAThousandServersFromAScript(t *testing.T) {
	var hosts []Host
	for i := range 1000 {
		hosts = append(hosts, Host{
			Name: fmt.Sprintf("web-%d", i), UID: fmt.Sprint(i), Address: "10.0.0.2", Login: "debian", Phase: "Running",
			Labels: map[string]string{"role": "web", "shard": fmt.Sprint(i % 10)}, Networks: []string{"net"}, Hypervisor: fmt.Sprintf("kvm%d", i%7),
		})
	}
	began := time.Now()
	answer, err := json.Marshal(Script(hosts, func(h Host) Access {
		return Access{Proxy: "'/usr/bin/burrow' dial " + h.Name + " %p", KnownHosts: "'/usr/bin/burrow' host-keys " + h.Name, Agent: "/run/a b"}
	}))
	require.NoError(t, err)
	require.Less(t, time.Since(began), time.Second)
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "list.json"), answer, 0o600))
	script := filepath.Join(dir, "inventory.sh")
	require.NoError(t, os.WriteFile(script, []byte("#!/bin/sh\n[ \"$1\" = --list ] && cat "+dir+"/list.json\n"), 0o700))
	cmd := exec.Command("ansible-inventory", "-i", script, "--list")
	cmd.Env = append(os.Environ(), "ANSIBLE_HOME="+t.TempDir(), "ANSIBLE_INVENTORY_ANY_UNPARSED_IS_FAILED=1")
	out, err := cmd.Output()
	require.NoError(t, err)
	var groups map[string]ScriptGroup
	require.NoError(t, json.Unmarshal(out, &groups))
	require.Len(t, groups["burrow"].Hosts, 1000)
	require.Len(t, groups["label_shard_3"].Hosts, 100)
	require.Len(t, groups["phase_Running"].Hosts, 1000)
	require.Len(t, groups["host_kvm0"].Hosts, 143)
}

func TestSSHArgumentsComeApartAsTheyWerePutTogether(t *testing.T) {
	a := Access{Proxy: `'/opt/it'\''s here/burrow' dial db %p`, KnownHosts: `'/b' host-keys db`, Agent: "/run/agent"}
	text := a.sshArgs(Host{Name: "db"})
	out, err := exec.Command("/usr/bin/python3", "-c", "import shlex,sys\nfor w in shlex.split(sys.argv[1]): print(w)", text).Output()
	require.NoError(t, err)
	words := strings.Split(strings.TrimSpace(string(out)), "\n")
	require.Contains(t, words, "ProxyCommand="+a.Proxy)
	require.Contains(t, words, "KnownHostsCommand="+a.KnownHosts)
	require.Contains(t, words, "IdentityAgent=/run/agent")
	for i := 0; i < len(words); i += 2 {
		require.Equal(t, "-o", words[i])
	}
}

func TestServersWithOneAddressHaveControlSocketsOfTheirOwn(t *testing.T) {
	one, two := ScriptHost(Host{Name: "a", UID: "1", Address: "10.0.0.2"}, Access{}), ScriptHost(Host{Name: "b", UID: "2", Address: "10.0.0.2"}, Access{})
	require.NotEqual(t, one["ansible_control_path"], two["ansible_control_path"])
}
