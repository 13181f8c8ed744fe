package ansible

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"burrow.dev/burrow/internal/ansiblex"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/manifest"
)

// secretsSet are what people have set, by name.
type secretsSet map[string]string

func (s secretsSet) Get(_ context.Context, name string) ([]byte, error) {
	value, ok := s[name]
	if !ok {
		return nil, errs.NewPermanent("secret "+name, "read", errs.ErrNotFound, "")
	}
	return []byte(value), nil
}

// writtenByNow is what a run has written for others to read. What it reads its secrets from
// must be its user's alone.
func (s *site) writtenByNow(run string) []byte {
	f := ansiblex.OpenFolder(s.dir, run)
	var all []byte
	for _, name := range []string{"log.txt", "events.jsonl", "run.json", "etc/burrow.yaml"} {
		text, err := os.ReadFile(f.Path(name))
		require.NoError(s.t, err)
		all = append(all, text...)
	}
	user, err := ansiblex.LookupUser(runner)
	require.NoError(s.t, err)
	for _, name := range []string{"etc/vars.json", "etc/vault-password", "etc/become-password"} {
		info, err := os.Stat(f.Path(name))
		require.NoError(s.t, err)
		require.Equal(s.t, os.FileMode(0o600), info.Mode())
		require.EqualValues(s.t, user.UID, info.Sys().(*syscall.Stat_t).Uid)
	}
	return all
}

// encrypted is text as ansible-vault encrypts it.
func encrypted(t *testing.T, password, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "password")
	require.NoError(t, os.WriteFile(file, []byte(password), 0o600))
	cmd := exec.Command("ansible-vault", "encrypt", "--vault-password-file", file, "--output", "-")
	cmd.Stdin = strings.NewReader(text)
	out, err := cmd.Output()
	require.NoError(t, err)
	return string(out)
}

func TestWhatAnsibleVaultEncryptedIsReadWithANamedPassword(t *testing.T) {
	s := newSite(t)
	s.set["vault"] = "the vault's password\n"
	out := filepath.Join(t.TempDir(), "out")
	files := play("    - ansible.builtin.copy: {content: '{{ word }}', dest: " + out + "}\n    - ansible.builtin.import_tasks: more.yaml\n")
	files["group_vars/all.yml"] = encrypted(t, "the vault's password", "word: from the vault\n")
	files["more.yaml"] = encrypted(t, "the vault's password", "- ansible.builtin.debug: {msg: parsed}\n")
	in := s.in(files)
	check := CheckIn{Owner: in.Owner, Bundle: in.Bundle, Ansible: in.Ansible}

	_, err := s.a.Check(t.Context(), check)
	require.ErrorContains(t, err, "vault")
	check.Ansible.VaultPassword = "secret:vault"
	_, err = s.a.Check(t.Context(), check)
	require.NoError(t, err)

	in.Ansible.VaultPassword = "secret:vault"
	_, err = s.a.Run(t.Context(), in)
	require.NoError(t, err, s.lastLog())
	text, err := os.ReadFile(out)
	require.NoError(t, err)
	require.Equal(t, "from the vault", string(text))
	s.nothingLeft()
}

// askingSudo stands for a sudo that wants a password: it asks as it is told to, and keeps
// the answer.
const askingSudo = `#!/bin/sh
while :; do case "$1" in -p) prompt=$2; shift 2;; -u) shift 2;; -*) shift;; *) break;; esac; done
printf '%%s' "$prompt" >&2
read -r answer
printf '%%s' "$answer" > %s
exec "$@"
`

func TestSudoIsAnsweredWithANamedPassword(t *testing.T) {
	s := newSite(t)
	s.set["sudo"] = "sudo's p{{ss}}word"
	dir := t.TempDir()
	sudo, got := filepath.Join(dir, "sudo"), filepath.Join(dir, "got")
	require.NoError(t, os.WriteFile(sudo, fmt.Appendf(nil, askingSudo, got), 0o700))
	in := s.in(play("    - {ansible.builtin.command: id, become: true, become_user: nobody, vars: {ansible_become_exe: " + sudo + "}}\n"))
	in.Ansible.BecomePassword = "secret:sudo"
	_, err := s.a.Run(t.Context(), in)
	require.NoError(t, err, s.lastLog())
	text, err := os.ReadFile(got)
	require.NoError(t, err)
	require.Equal(t, s.set["sudo"], string(text))
	s.nothingLeft()
}

func TestNamedSecretsArriveInVariablesAsTheyAre(t *testing.T) {
	s := newSite(t)
	s.set["token"], s.set["key"] = "{{ 6 * 7 }} \"größer\" \\n", "line 1\nline 2\n"
	dir := t.TempDir()
	in := s.in(play("    - ansible.builtin.copy: {content: '{{ top }}', dest: " + dir + "/top}\n" +
		"    - ansible.builtin.copy: {content: '{{ app.users[1].key }}', dest: " + dir + "/nested}\n" +
		"    - ansible.builtin.copy: {content: '{{ app.plain }}', dest: " + dir + "/plain}\n"))
	vars := map[string]any{"top": "secret:token", "app": map[string]any{
		"users": []any{1.5, map[string]any{"key": "secret:key"}}, "plain": "not secret:token",
	}}
	in.Ansible.ExtraVars = vars
	_, err := s.a.Run(t.Context(), in)
	require.NoError(t, err, s.lastLog())
	for name, want := range map[string]string{"top": s.set["token"], "nested": s.set["key"], "plain": "not secret:token"} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		require.Equal(t, want, string(text))
	}
	require.Equal(t, "secret:token", vars["top"], "the operation's own input holds the name")
	s.nothingLeft()
}

func TestASecretThatIsNotSetIsNamed(t *testing.T) {
	s := newSite(t)
	s.set["binary"] = "\xff\xfe\x00\x01"
	for _, spec := range []manifest.Ansible{
		{VaultPassword: "secret:nosuch"},
		{BecomePassword: "secret:nosuch"},
		{ExtraVars: map[string]any{"a": []any{map[string]any{"b": "secret:nosuch"}}}},
	} {
		in := s.in(play("    - ansible.builtin.ping:\n"))
		spec.Playbook = in.Ansible.Playbook
		in.Ansible = spec
		_, err := s.a.Check(t.Context(), CheckIn{Owner: in.Owner, Bundle: in.Bundle, Ansible: spec})
		require.Equal(t, errs.Permanent, errs.ClassOf(err))
		require.ErrorContains(t, err, "there is no secret nosuch; burrow secret set nosuch, then try again")
		_, err = s.a.Run(t.Context(), in)
		require.Equal(t, errs.Operator, errs.ClassOf(err))
		require.ErrorContains(t, err, "there is no secret nosuch; burrow secret set nosuch, then burrow retry server/db")
		require.Contains(t, s.log(), "there is no secret nosuch")
	}
	in := s.in(play("    - ansible.builtin.ping:\n"))
	in.Ansible.VaultPassword = "secret:binary"
	_, err := s.a.Run(t.Context(), in)
	require.ErrorContains(t, err, "secret binary is not text")
	s.nothingLeft()
}

func TestAServerThatIsNamedLikeASecretIsRetriedAllTheSame(t *testing.T) {
	s := newSite(t)
	s.set["name"] = "db-one"
	flag := t.TempDir() + "/flag"
	in := s.in(play("    - ansible.builtin.shell: test -e " + flag + " || { touch " + flag + "; exit 1; }\n"))
	in.Hosts[0].Server.Name = "db-one"
	in.Ansible.Retries, in.Ansible.ExtraVars = 1, map[string]any{"x": "secret:name"}
	_, err := s.a.Run(t.Context(), in)
	require.NoError(t, err, s.lastLog())
	s.nothingLeft()
}
