package ansible

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"burrow.dev/burrow/manifest"
)

// userFiles is a folder as users have it: everything in it wants another connection.
func userFiles(playbook string) map[string]string {
	return map[string]string{
		"site.yaml": playbook,
		"hosts.yaml": `all:
  vars:
    connection: &connection
      ansible_user: ubuntu
      ansible_ssh_private_key_file: ~/.ssh/id_rsa
    tables: &tables
      rest_db: bomdb
  hosts:
    db:
      <<: [*connection, *tables]
      ansible_host: db
      ansible_ssh_common_args: -o ProxyJump=bastion
      ansible_ssh_pass: secret
    legacy1:
      <<: *connection
      ansible_host: 10.1.0.11
`,
		"group_vars/all.yml":       "ansible_port: 2222\nansible_ssh_user: nobody\nfrom_group: yes-group\nansible_connection: local\n",
		"host_vars/db.yml":         "ansible_ssh_host: 192.0.2.1\nansible_host_key_checking: false\nfrom_host: yes-host\n",
		"host_vars/legacy1/a.yml":  "from_host: legacy\n",
		"ansible.cfg":              "[defaults]\nremote_user = nosuch\nhost_key_checking = False\nask_pass = True\ntimeout = 11\n[ssh_connection]\nssh_args = -F ./nosuch\ncontrol_path_dir = /tmp/cp\n",
		"roles/say/tasks/main.yml": "- name: Role speaks\n  ansible.builtin.debug:\n    msg: from the role\n",
	}
}

func TestARunReachesTheServerWhateverTheUsersFilesSay(t *testing.T) {
	s := newSite(t)
	in := s.in(userFiles(`- name: Set up
  hosts: db
  gather_facts: false
  roles: [say]
  tasks:
    - name: Over SSH
      ansible.builtin.command: echo at {{ ansible_host }} table {{ rest_db }} {{ from_group }} {{ from_host }} {{ extra }}
      register: out
    - name: Say it
      ansible.builtin.debug:
        msg: "{{ out.stdout }} legacy={{ hostvars.legacy1.ansible_user }}@{{ hostvars.legacy1.ansible_host }} {{ hostvars.legacy1.from_host }} {{ groups.label_role_db }} {{ groups.network_db_net }}"
`))
	in.Ansible.ExtraVars = map[string]any{"extra": "x-y"}
	out, err := s.a.Run(t.Context(), in)
	require.NoError(t, err, s.lastLog())
	require.Equal(t, map[string]manifest.Recap{"db": {OK: 3, Changed: 1}}, out.Recap)
	require.Equal(t, "logs/uid-db-0001/"+out.RunID+".log", out.LogKey)
	log := s.log()
	require.Contains(t, log, "at 172.16.90.2 table bomdb yes-group yes-host x-y legacy=ubuntu@10.1.0.11 legacy ['db'] ['db']")
	require.Contains(t, log, "PLAY RECAP")
	s.nothingLeft()
}

func TestPlaybooksRunInOrderWithTheirTagsAndFurtherArguments(t *testing.T) {
	s := newSite(t)
	tagged := func(name string) string {
		return "- name: " + name + "\n  hosts: db\n  gather_facts: false\n  tasks:\n" +
			"    - {name: early " + name + ", ansible.builtin.debug: {msg: m}, tags: [wanted]}\n" +
			"    - {name: late " + name + ", ansible.builtin.debug: {msg: \"{{ n }}\"}, tags: [wanted]}\n" +
			"    - {name: unwanted " + name + ", ansible.builtin.fail: {}, tags: [wanted, slow]}\n" +
			"    - {name: untagged " + name + ", ansible.builtin.fail: {}}\n"
	}
	in := s.in(map[string]string{"site.yaml": tagged("first"), "sub/second.yaml": tagged("second")})
	in.Ansible.Playbook = []string{"site.yaml", "sub/second.yaml"}
	in.Ansible.Tags, in.Ansible.SkipTags = []string{"wanted"}, []string{"slow"}
	in.Ansible.ExtraVars = map[string]any{"n": 7}
	in.Ansible.ExtraArgs = []string{"-vvvv", "--diff", "--forks", "2", "--force-handlers", "--start-at-task=late first"}
	out, err := s.a.Run(t.Context(), in)
	require.NoError(t, err, s.lastLog())
	require.Equal(t, manifest.Recap{OK: 3}, out.Recap["db"], "early first is before the task that it starts at")
	log := s.log()
	require.Less(t, strings.Index(log, "TASK [late first]"), strings.Index(log, "TASK [early second]"))
	s.nothingLeft()
}
