package ansiblex

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"burrow.dev/burrow/internal/errs"
)

// unpacked makes a run's folder with a bundle of these files.
func unpacked(t *testing.T, files map[string]string) *Folder {
	t.Helper()
	dir, err := os.MkdirTemp("", "bx") // short enough for sockets
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	require.NoError(t, os.Chmod(dir, 0o711))
	user, err := CheckUser()
	require.NoError(t, err)
	f, err := MakeFolder(dir, user, Record{ID: NewRunID(time.Now()), Owner: "server/db"})
	require.NoError(t, err)
	for name, text := range files {
		path := filepath.Join(f.Bundle(), name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		mode := os.FileMode(0o644)
		if filepath.Ext(name) == ".sh" {
			mode = 0o755
		}
		require.NoError(t, os.WriteFile(path, []byte(text), mode))
	}
	return f
}

func variable(t *testing.T, e Effective, host, name string) Variable {
	t.Helper()
	for _, v := range e.Hosts[host] {
		if v.Name == name {
			return v
		}
	}
	require.Failf(t, "no such variable", "%s of %s", name, host)
	return Variable{}
}

func TestTheInventoryOfARunSaysWhatOfTheUsersItOverrides(t *testing.T) {
	inventories := map[string]string{
		"plays/hosts.yaml": "all:\n  children:\n    dbs:\n      children:\n        primary:\n          hosts:\n            db: {ansible_host: 9.9.9.9, rack: r1}\n    caches: {hosts: {redis: {ansible_host: 8.8.8.8}}}\n",
		"plays/hosts.ini":  "[primary]\ndb ansible_host=9.9.9.9 rack=r1\n[dbs:children]\nprimary\n[caches]\nredis ansible_host=8.8.8.8\n",
		"plays/hosts.sh":   "#!/bin/sh\necho '{\"dbs\":{\"children\":[\"primary\"]},\"primary\":{\"hosts\":[\"db\"]},\"caches\":{\"hosts\":[\"redis\"]},\"_meta\":{\"hostvars\":{\"db\":{\"ansible_host\":\"9.9.9.9\",\"rack\":\"r1\"},\"redis\":{\"ansible_host\":\"8.8.8.8\"}}}}'\n",
	}
	for source, text := range inventories {
		t.Run(filepath.Ext(source), func(t *testing.T) {
			f := unpacked(t, map[string]string{
				"plays/site.yaml": "- hosts: all\n", source: text,
				"plays/host_vars/db.yml":         "ansible_ssh_host: 7.7.7.7\nansible_ssh_private_key_file: /root/id\nmotd: \"{{ burrow_server }}\"\ndb_password: planted-1\n",
				"plays/group_vars/dbs/main.yml":  "ansible_port: 2222\nusers: [{name: a, password: planted-2}]\n",
				"plays/group_vars/caches.yml":    "ansible_port: 6379\n",
				"plays/group_vars/all/vault.yml": "$ANSIBLE_VAULT;1.1;AES256\n3131\n",
				"other/host_vars/db.yml":         "ansible_user: nobody\n",
			})
			e, err := f.Effective(t.Context(), Play{Playbooks: []string{"plays/site.yaml"}, Inventory: source, Hosts: twoHosts[:1], Burrow: "/usr/bin/burrow"})
			require.NoError(t, err)

			require.Equal(t, []string{source}, e.Sources)
			require.Equal(t, []string{"plays/group_vars/all/vault.yml"}, e.Encrypted)
			require.Equal(t, []string{"db"}, e.Groups["primary"].Hosts)
			require.Equal(t, []string{"redis"}, e.Groups["caches"].Hosts)
			require.Equal(t, []string{"db"}, e.Groups["network_db_net"].Hosts)
			require.Equal(t, Variable{Name: "ansible_host", Value: "172.16.90.2", Ours: true, Overridden: []string{source}}, variable(t, e, "db", "ansible_host"))
			require.Equal(t, Variable{Name: "ansible_ssh_host", Value: "172.16.90.2", Ours: true, Overridden: []string{"plays/host_vars/db.yml"}}, variable(t, e, "db", "ansible_ssh_host"))
			require.Equal(t, []string{"plays/group_vars/dbs/main.yml"}, variable(t, e, "db", "ansible_port").Overridden)
			require.Empty(t, variable(t, e, "db", "ansible_user").Overridden, "that folder is not read")
			require.Equal(t, "(run)/etc/keys/db.pub", variable(t, e, "db", "ansible_private_key_file").Value)
			require.Equal(t, Variable{Name: "rack", Value: "r1"}, variable(t, e, "db", "rack"))
			require.Equal(t, "{{ burrow_server }}", variable(t, e, "db", "motd").Value)
			require.Equal(t, "{{ evil }}", variable(t, e, "db", "burrow_labels").Value.(map[string]any)["app.kubernetes.io/name"])
			require.NotContains(t, e.Hosts, "redis")

			text, err := json.Marshal(e)
			require.NoError(t, err)
			require.NotContains(t, string(text), "planted")
			require.NotContains(t, string(text), f.Dir)
		})
	}
}

func TestAnInventoryThatAnsibleRefusesIsSaid(t *testing.T) {
	f := unpacked(t, map[string]string{"site.yaml": "- hosts: all\n", "hosts.yaml": "all: [broken\n"})
	_, err := f.Effective(t.Context(), Play{Playbooks: []string{"site.yaml"}, Inventory: "hosts.yaml", Hosts: twoHosts[:1], Burrow: "/b"})
	require.Equal(t, errs.Permanent, errs.ClassOf(err))
	require.ErrorContains(t, err, "hosts.yaml")
	require.NotContains(t, err.Error(), f.Dir)
}

func TestWithoutAnInventoryOfTheUsersThereIsBurrows(t *testing.T) {
	f := unpacked(t, map[string]string{"site.yaml": "- hosts: all\n"})
	e, err := f.Effective(t.Context(), Play{Playbooks: []string{"site.yaml"}, Hosts: twoHosts, Burrow: "/b"})
	require.NoError(t, err)
	require.Empty(t, e.Sources)
	require.Len(t, e.Hosts, 2)

	t.Setenv("PATH", "/nonexistent")
	_, err = unpacked(t, map[string]string{"site.yaml": ""}).Effective(t.Context(), Play{Playbooks: []string{"site.yaml"}, Hosts: twoHosts, Burrow: "/b"})
	require.Equal(t, errs.Operator, errs.ClassOf(err))
	require.ErrorContains(t, err, "install the package ansible-core")
}
