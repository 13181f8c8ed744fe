package ansible

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// planted are secrets of the worker and of a task, each of which must stay where it is.
var planted = map[string]string{
	"the worker's environment": "planted-in-the-environment",
	"a variable under no_log":  "planted-in-a-variable",
	"the management key":       "PRIVATE KEY",

	"the vault password":  "planted-for-the-vault",
	"the become password": "planted for become",
	"a named variable":    "planted \"in\" a näm'd variable {{ 7 }}",
	"a line of another":   "planted-in-the-second-line",
}

// namedSecrets are what a run names as secret:NAME.
var namedSecrets = secretsSet{
	"vault": planted["the vault password"], "become": planted["the become password"],
	"one": planted["a named variable"], "lines": "first line\n" + planted["a line of another"] + "\n",
}

// argvAndEnvironment reads what everybody may of the processes of a run, and what root may.
func argvAndEnvironment(t *testing.T) []byte {
	t.Helper()
	found, err := filepath.Glob("/proc/[0-9]*/environ")
	require.NoError(t, err)
	var all []byte
	for _, f := range found {
		env, err := os.ReadFile(f)
		if err != nil || !bytes.Contains(env, []byte(markInEnvironment)) {
			continue
		}
		argv, _ := os.ReadFile(filepath.Join(filepath.Dir(f), "cmdline"))
		all = append(append(all, env...), argv...)
	}
	return all
}

const markInEnvironment = "BURROW_RUN="

func TestPlantedSecretsAreInNothingThatARunWrites(t *testing.T) {
	s := newSite(t)
	maps.Copy(s.set, namedSecrets)
	t.Setenv("BURROW_TEST_SECRET", planted["the worker's environment"])
	var processes []byte
	var beats, meanwhile []byte
	s.a.beat = func(_ context.Context, p Progress) {
		encoded, err := json.Marshal(p)
		require.NoError(t, err)
		beats = append(beats, encoded...)
		if p.Task != "" {
			processes = append(processes, argvAndEnvironment(t)...)
			meanwhile = append(meanwhile, s.writtenByNow(p.RunID)...)
		}
	}
	in := s.in(play(`    - name: Use it
      ansible.builtin.command: {cmd: sh -c "read x; sleep 1", stdin: "{{ password }}"}
      no_log: true
    - name: Show {{ one }}
      ansible.builtin.debug: {msg: ["{{ one }}", "{{ deep.list[0].lines }}", "{{ one | to_json }}"]}
    - name: Print it
      ansible.builtin.command: {cmd: cat, stdin: "{{ one }} and {{ deep.list[0].lines }}"}
    - name: Warn of it
      ansible.builtin.command: {cmd: "cat /nonexistent/planted", stdin: "{{ one }}"}
      ignore_errors: true
    - name: Fail without hiding it
      ansible.builtin.fail: {msg: "it is {{ one }}, {{ deep.list[0].lines }}{{ 'x' * 1950 }}{{ one }}"}
      ignore_errors: true
    - name: Fail with it
      ansible.builtin.fail: {msg: "it was {{ password }}"}
      no_log: true
`))
	in.Ansible.ExtraVars = map[string]any{
		"password": planted["a variable under no_log"],
		"one":      "secret:one", "deep": map[string]any{"list": []any{map[string]any{"lines": "secret:lines"}}},
	}
	in.Ansible.VaultPassword, in.Ansible.BecomePassword = "secret:vault", "secret:become"
	in.Ansible.ExtraArgs = []string{"-vvv"}
	out, err := s.a.Run(t.Context(), in)
	require.Error(t, err)
	var ended *endedError
	require.ErrorAs(t, err, &ended)
	history, jerr := json.Marshal(struct {
		Out     RunOut
		Error   string
		Details any
	}{out, err.Error(), ended.Details()})
	require.NoError(t, jerr)
	require.NotEmpty(t, processes, "the run was looked at")
	written := map[string][]byte{"processes": processes, "heartbeats": beats, "history": history, "the run's folder": meanwhile}
	require.Contains(t, s.log(), `"***"`)
	for _, dir := range []string{s.dir, s.blobs.dir} {
		require.NoError(t, filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || filepath.Base(filepath.Dir(p)) == "bundles" {
				return err
			}
			written[p], err = os.ReadFile(p)
			return err
		}))
	}
	for where, text := range written {
		for what, secret := range planted {
			if where == s.dir+"/"+filepath.Base(where) { // a copy of the program
				continue
			}
			inJSON, err := json.Marshal(secret)
			require.NoError(t, err)
			for _, spelled := range [][]byte{[]byte(secret), bytes.Trim(inJSON, `"`)} {
				require.False(t, bytes.Contains(text, spelled), "%s is in %s", what, where)
			}
		}
	}
	s.nothingLeft()
}

// everyAlias is a variables file that sets each connection variable to what leads elsewhere.
func everyAlias(t *testing.T) string {
	t.Helper()
	vars := map[string]any{}
	for _, name := range []string{
		"ansible_connection", "ansible_host", "ansible_ssh_host", "ansible_port", "ansible_ssh_port", "ansible_user", "ansible_ssh_user",
		"ansible_private_key_file", "ansible_ssh_private_key_file", "ansible_password", "ansible_ssh_pass", "ansible_ssh_password",
		"ansible_host_key_checking", "ansible_ssh_host_key_checking", "ansible_ssh_args", "ansible_ssh_common_args", "ansible_ssh_extra_args",
		"ansible_sftp_extra_args", "ansible_scp_extra_args", "ansible_ssh_executable", "ansible_sftp_executable", "ansible_scp_executable",
		"ansible_control_path", "ansible_control_path_dir", "ansible_ssh_timeout", "ansible_timeout", "ansible_ssh_pkcs11_provider",
	} {
		vars[name] = "/nonexistent/elsewhere"
	}
	vars["ansible_connection"], vars["ansible_host_key_checking"], vars["ansible_ssh_host_key_checking"] = "local", false, false
	vars["ansible_port"], vars["ansible_ssh_port"], vars["ansible_timeout"], vars["ansible_ssh_timeout"] = 1, 1, 1, 1
	text, err := json.Marshal(vars)
	require.NoError(t, err)
	return string(text)
}

func TestNoAliasOfAConnectionVariableLeadsARunElsewhere(t *testing.T) {
	s := newSite(t)
	for _, file := range []string{"group_vars/all.yml", "group_vars/label_role_db.yml", "group_vars/burrow/z.yml", "host_vars/db.yml", "host_vars/db/~~~z.yml", "inventory"} {
		t.Run(file, func(t *testing.T) {
			files := play("    - ansible.builtin.command: \"true\"\n    - ansible.builtin.debug: {msg: \"at {{ ansible_host }} as {{ ansible_user }} by {{ ansible_connection }}\"}\n")
			if file == "inventory" {
				files["hosts.yaml"] = fmt.Sprintf(`{"all": {"vars": %[1]s, "hosts": {"db": %[1]s}, "children": {"label_role_db": {"vars": %[1]s}}}}`, everyAlias(t))
			} else {
				files[file] = everyAlias(t)
			}
			_, err := s.a.Run(t.Context(), s.in(files))
			require.NoError(t, err, s.lastLog())
			require.Contains(t, s.log(), "at 172.16.90.2 as root by ssh")
		})
	}
}
