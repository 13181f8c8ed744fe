package inguest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"burrow.dev/burrow/internal/ansiblex"
	"burrow.dev/burrow/manifest"
)

// site is a run's folder as a guest has it, elsewhere than there.
type site struct {
	t   *testing.T
	dir string
	env []string
}

func place(t *testing.T, p Play) *site {
	t.Helper()
	s := &site{t: t, dir: filepath.Join(t.TempDir(), p.Key), env: append(os.Environ(), "HOME="+t.TempDir())}
	files, err := p.Files()
	require.NoError(t, err)
	for _, f := range files {
		path := filepath.Join(s.dir, strings.TrimPrefix(f.Path, p.Dir()))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, f.Content, os.FileMode(f.Mode)))
	}
	t.Cleanup(func() { s.run("stop") })
	return s
}

func (s *site) run(args ...string) []byte {
	s.t.Helper()
	cmd := exec.Command("/bin/sh", append([]string{filepath.Join(s.dir, "run")}, args...)...)
	cmd.Env = s.env
	out, err := cmd.Output()
	require.NoError(s.t, err)
	return out
}

// end begins the run and reads it to its end, as burrow does.
func (s *site) end() (last Answer, log string, events []string) {
	s.t.Helper()
	s.run("start")
	known := Offsets{Try: 1}
	require.Eventually(s.t, func() bool {
		words := Play{Key: filepath.Base(s.dir)}.Read(known)
		a, err := ParseAnswer(s.run(words[2:]...))
		require.NoError(s.t, err)
		require.False(s.t, a.Interrupted)
		log += string(a.Log)
		known.Log, known.Events = known.Log+len(a.Log), known.Events+len(a.Events)
		if len(events) < known.Try {
			events = append(events, "")
		}
		events[known.Try-1] += string(a.Events)
		if a.Try > known.Try && len(a.Events) == 0 {
			known.Try, known.Events = known.Try+1, 0
			return false
		}
		last = a
		return a.Ended && len(a.Log)+len(a.Events) == 0
	}, time.Minute, 50*time.Millisecond)
	return last, log, events
}

func playOf(t *testing.T, spec manifest.Ansible, files map[string]string) Play {
	t.Helper()
	p := Play{Key: "first-boot", Spec: spec, Host: ansiblex.Host{Name: "db", UID: "u", Labels: map[string]string{"role": "db"}, Networks: []string{"net"}}}
	if files != nil {
		dir := t.TempDir()
		write(t, dir, files)
		var err error
		p.Archive, err = gzipped(dir)
		require.NoError(t, err)
	}
	return p
}

func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	}
}

const greeting = `- hosts: label_role_db
  gather_facts: false
  tasks:
    - include_vars: greeting.yml
      tags: [greet]
    - name: Greet
      debug: {msg: "{{ greeting }} {{ who }} from {{ inventory_hostname }} on {{ burrow_networks[0] }}"}
      tags: [greet]
    - name: Never
      fail: {}
      tags: [never]
`

func remote(spec manifest.Ansible) manifest.Ansible {
	spec.RemotePlaybook, spec.Playbook = true, []string{"plays/site.yaml"}
	return spec
}

func TestAFolderRunsInTheGuestWithItsVariablesAndGroups(t *testing.T) {
	spec := remote(manifest.Ansible{ExtraVars: map[string]any{"who": "it's \"$(id)\""}, Tags: []string{"greet"}, ExtraArgs: []string{"-e", "x='$(touch owned)'"}})
	s := place(t, playOf(t, spec, map[string]string{"plays/site.yaml": greeting, "plays/vars/greeting.yml": "greeting: hello\n"}))
	last, log, events := s.end()
	require.Equal(t, State{Stage: StagePlay, Ended: true, Try: 1, Boot: last.Boot}, last.State)
	require.Contains(t, log, `hello it's \"$(id)\" from db on net`)
	require.Contains(t, events[0], `"event": "recap"`)
	require.NotContains(t, log, "Never")
	require.NoFileExists(t, filepath.Join(s.dir, "work", "owned"))

	s.run("start")
	again, err := ParseAnswer(s.run("read", "0", "1", "0"))
	require.NoError(t, err)
	require.True(t, again.Ended, "a run is begun once")
}

func TestAFailedTaskIsTriedAgainAsOftenAsDeclared(t *testing.T) {
	spec := remote(manifest.Ansible{Retries: 1})
	s := place(t, playOf(t, spec, map[string]string{"plays/site.yaml": "- hosts: db\n  gather_facts: false\n  tasks:\n    - name: Cannot\n      fail: {msg: \"for a reason\"}\n"}))
	last, log, events := s.end()
	require.Equal(t, State{Stage: StagePlay, Exit: 2, Ended: true, Try: 2, Boot: last.Boot}, last.State)
	require.Contains(t, log, "burrow: retry 1 of 1")
	require.Len(t, events, 2)
	require.Contains(t, events[1], "for a reason")
}

func TestWhatCannotRunEndsWithItsStage(t *testing.T) {
	cases := map[string]struct {
		spec  manifest.Ansible
		files map[string]string
		want  State
		says  string
	}{
		"a syntax error":          {remote(manifest.Ansible{Retries: 3}), map[string]string{"plays/site.yaml": "- hosts: [\n"}, State{Stage: StagePlay, Exit: 4}, "ERROR!"},
		"no such playbook":        {remote(manifest.Ansible{}), map[string]string{"other.yaml": ""}, State{Stage: StageFetch, Exit: 2}, "there is no file plays/site.yaml in it"},
		"a repository that isn't": {manifest.Ansible{Pull: &manifest.Pull{URL: "file:///nonexistent/site"}, Playbook: []string{"local.yml"}}, nil, State{Stage: StageFetch, Exit: 1}, "/nonexistent/site"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			last, log, _ := place(t, playOf(t, c.spec, c.files)).end()
			c.want.Ended, c.want.Try, c.want.Boot = true, 1, last.Boot
			require.Equal(t, c.want, last.State)
			require.Contains(t, log, c.says)
		})
	}
}

func TestAPlaybookIsPulledByGit(t *testing.T) {
	repository := t.TempDir()
	write(t, repository, map[string]string{"local.yml": greeting, "vars/greeting.yml": "greeting: pulled\n"})
	for _, args := range [][]string{{"init", "-q"}, {"add", "-A"}, {"-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "one"}} {
		out, err := exec.Command("git", append([]string{"-C", repository}, args...)...).CombinedOutput()
		require.NoError(t, err, string(out))
	}
	spec := manifest.Ansible{Pull: &manifest.Pull{URL: "file://" + repository}, Playbook: []string{"local.yml"}, ExtraVars: map[string]any{"who": "you"}}
	last, log, _ := place(t, playOf(t, spec, nil)).end()
	require.Equal(t, 0, last.Exit)
	require.True(t, last.Ended)
	require.Contains(t, log, "pulled you from db on net")
}

func TestWithoutAnsibleAndAWayToItTheRunEndsAtItsInstallation(t *testing.T) {
	s := place(t, playOf(t, remote(manifest.Ansible{}), map[string]string{"plays/site.yaml": greeting}))
	bin := t.TempDir() // the programs of a small guest, and a package manager without a network
	for _, name := range []string{"dirname", "basename", "chmod", "mkdir", "mv", "cat", "sleep", "rm", "tail", "head", "base64", "tr", "setsid", "grep", "sh"} {
		path, err := exec.LookPath(name)
		require.NoError(t, err)
		require.NoError(t, os.Symlink(path, filepath.Join(bin, name)))
	}
	require.NoError(t, os.WriteFile(filepath.Join(bin, "apt-get"), []byte("#!/bin/sh\necho 'E: Temporary failure resolving' >&2\nexit 100\n"), 0o755))
	s.env = append(s.env, "PATH="+bin)
	last, log, _ := s.end()
	require.Equal(t, State{Stage: StageInstall, Exit: 100, Ended: true, Try: 1, Boot: last.Boot}, last.State)
	require.Contains(t, log, "ansible-core")
	require.Contains(t, log, "Temporary failure resolving")
}

func TestAStoppedRunIsGoneAndCanBeBegunAnew(t *testing.T) {
	s := place(t, playOf(t, remote(manifest.Ansible{}), map[string]string{
		"plays/site.yaml": "- hosts: db\n  gather_facts: false\n  tasks:\n    - command: sleep 3600\n      when: lookup('env', 'QUICK') == ''\n",
	}))
	s.run("start")
	require.Eventually(t, func() bool {
		a, err := ParseAnswer(s.run("read", "0", "1", "0"))
		require.NoError(t, err)
		return strings.Contains(string(a.Events), "command")
	}, time.Minute, 50*time.Millisecond)
	pid, err := os.ReadFile(filepath.Join(s.dir, "pid"))
	require.NoError(t, err)
	s.run("stop")
	require.Eventually(t, func() bool {
		out, _ := exec.Command("pgrep", "-g", strings.TrimSpace(string(pid))).Output()
		return len(out) == 0
	}, 10*time.Second, 20*time.Millisecond)

	s.env = append(s.env, "QUICK=1")
	last, _, _ := s.end()
	require.Equal(t, 0, last.Exit)
}
