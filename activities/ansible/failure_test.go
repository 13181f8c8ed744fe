package ansible

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/manifest"
)

// play is a playbook for all hosts with some tasks.
func play(tasks string) map[string]string {
	return map[string]string{"site.yaml": "- name: Set up\n  hosts: all\n  gather_facts: false\n  tasks:\n" + tasks}
}

func TestAFailedTaskIsRetriedAndThenForAPerson(t *testing.T) {
	s := newSite(t)
	in := s.in(play("    - name: \"Install\\e[31m it\"\n      ansible.builtin.command: sh -c 'echo no such package >&2; exit 3'\n"))
	in.Ansible.Retries = 1
	_, err := s.a.Run(t.Context(), in)
	require.Equal(t, errs.Operator, errs.ClassOf(err))
	require.ErrorContains(t, err, `server/db: run playbook: task "Install it" on db: no such package (after 1 retries)`)
	require.ErrorContains(t, err, "burrow retry server/db, with -f and the playbook")
	require.NotContains(t, err.Error(), "\x1b")
	var ended *endedError
	require.ErrorAs(t, err, &ended)
	runs, lerr := s.a.Logs().Runs(t.Context(), manifest.Record{Metadata: manifest.RecordMeta{UID: "uid-db-0001"}})
	require.NoError(t, lerr)
	require.Equal(t, runs, []string{ended.out.RunID})
	require.Equal(t, manifest.Recap{Failed: 1}, ended.out.Recap["db"])
	log := s.log()
	require.Equal(t, 2, strings.Count(log, "PLAY RECAP"))
	require.Contains(t, log, "burrow: retry 1 of 1, for db")
	require.NotContains(t, log, "\x1b")
	s.nothingLeft()
}

func TestARetryThatSucceedsIsSuccess(t *testing.T) {
	s := newSite(t)
	flag := t.TempDir() + "/flag"
	in := s.in(play("    - ansible.builtin.shell: test -e " + flag + " || { touch " + flag + "; exit 1; }\n"))
	in.Ansible.Retries = 3
	out, err := s.a.Run(t.Context(), in)
	require.NoError(t, err)
	require.Equal(t, manifest.Recap{OK: 1, Changed: 1}, out.Recap["db"])
}

func TestFailuresThatThePlaybookMendsAreNone(t *testing.T) {
	s := newSite(t)
	out, err := s.a.Run(t.Context(), s.in(play(`    - ansible.builtin.command: "false"
      ignore_errors: true
    - block:
        - ansible.builtin.command: "false"
      rescue:
        - ansible.builtin.debug: {msg: rescued}
`)))
	require.NoError(t, err)
	require.Equal(t, manifest.Recap{OK: 2, Changed: 1, Rescued: 1, Ignored: 1}, out.Recap["db"])
}

func TestWhatNoLogHidesIsNowhere(t *testing.T) {
	s := newSite(t)
	const secret = "hunter2-in-extra-vars"
	in := s.in(play(`    - name: Set the password
      ansible.builtin.command: sh -c 'echo "{{ password }}" >&2; exit 1'
      no_log: true
`))
	in.Ansible.ExtraVars = map[string]any{"password": secret}
	_, err := s.a.Run(t.Context(), in)
	require.ErrorContains(t, err, `task "Set the password" on db: (hidden: the task has no_log)`)
	require.NotContains(t, err.Error(), secret)
	require.NotContains(t, s.log(), secret)
}

func TestAnUnreachableServerIsTriedAgainLater(t *testing.T) {
	s := newSite(t)
	in := s.in(play("    - ansible.builtin.ping:\n"))
	in.Hosts[0].Network = "elsewhere"
	in.Ansible.Retries = 3
	_, err := s.a.Run(t.Context(), in)
	require.Equal(t, errs.Transient, errs.ClassOf(err))
	require.ErrorContains(t, err, "server/db: run playbook: unreachable: task")
	require.Contains(t, s.log(), "burrow: cannot reach db: no route to host")
	require.Equal(t, 1, strings.Count(s.log(), "PLAY RECAP"), "not a matter for the playbook's retries")

	s.nets["elsewhere"] = s.guest // it is back
	out, err := s.a.Run(t.Context(), in)
	require.NoError(t, err, "the next attempt goes on by itself")
	require.Equal(t, manifest.Recap{OK: 1}, out.Recap["db"])
	s.nothingLeft()
}

func TestAnotherHostKeyIsNotSpokenTo(t *testing.T) {
	s := newSite(t)
	in := s.in(play("    - ansible.builtin.ping:\n"))
	stranger, _ := newKey(t)
	in.Hosts[0].HostKeys = []string{line(stranger)}
	_, err := s.a.Run(t.Context(), in)
	require.Equal(t, errs.Transient, errs.ClassOf(err))
	require.ErrorContains(t, err, "Host key verification failed")
}

func TestARunThatDidNothingIsNoSuccess(t *testing.T) {
	cases := map[string]struct {
		files map[string]string
		args  []string
		says  string
	}{
		"no play matches":        {map[string]string{"site.yaml": "- name: Web\n  hosts: web\n  tasks: [{ansible.builtin.ping: }]\n"}, nil, "it matched no host; inventory has db, in groups all, burrow, image_debian12, label_role_db, network_db_net, ungrouped (plays: Web; the run is for db)"},
		"what there is is named": {map[string]string{"site.yaml": "- name: Web\n  hosts: wbe\n  tasks: [{ansible.builtin.ping: }]\n", "hosts.yaml": "web: {hosts: {\"w[01:20]\": }}\n"}, nil, "inventory has db, w01, w02, w03, w04, w05, w06, w07, w08, w09, w10, w11, …, in groups all, burrow"},
		"tasks are only listed":  {play("    - ansible.builtin.ping:\n"), []string{"--list-tasks"}, "it ran nothing on db"},
		"a missing role":         {map[string]string{"site.yaml": "- hosts: all\n  roles: [nosuch]\n"}, nil, "the role 'nosuch' was not found"},
		"not YAML":               {map[string]string{"site.yaml": "- hosts: [all\n"}, nil, "Ansible refuses it"},
		"an unknown option":      {play("    - ansible.builtin.ping:\n"), []string{"--nosuch"}, "unrecognized arguments: --nosuch"},
		"a value is asked for":   {map[string]string{"site.yaml": "- hosts: all\n  gather_facts: false\n  vars_prompt: [{name: db_password}]\n  tasks: [{ansible.builtin.ping: }]\n"}, nil, "it asks for a value (vars_prompt db_password)"},
		"an inventory's mistake": {map[string]string{"site.yaml": "- hosts: all\n", "hosts.yaml": "all: [\n"}, nil, "Ansible refuses it"},
	}
	s := newSite(t)
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			in := s.in(c.files)
			in.Ansible.ExtraArgs = c.args
			in.Ansible.Retries = 3
			_, err := s.a.Run(t.Context(), in)
			require.ErrorContains(t, err, c.says)
			require.Equal(t, errs.Operator, errs.ClassOf(err), "the server stands; a person mends the playbook")
			require.NotContains(t, err.Error(), s.dir, "the run's folder is of no use to anybody")
			s.nothingLeft()
		})
	}
}

func TestAPromptWithADefaultTakesIt(t *testing.T) {
	s := newSite(t)
	_, err := s.a.Run(t.Context(), s.in(map[string]string{
		"site.yaml": "- hosts: all\n  gather_facts: false\n  vars_prompt: [{name: v, default: dflt}]\n  tasks: [{ansible.builtin.debug: {msg: 'value {{ v }}'}}, {ansible.builtin.pause: {prompt: wait}}]\n",
	}))
	require.NoError(t, err)
	require.Contains(t, s.log(), "value dflt")
}

func TestItsTimeOverARunIsKilledAndForAPerson(t *testing.T) {
	s := newSite(t)
	in := s.in(play("    - ansible.builtin.command: sleep 300\n"))
	in.Ansible.Timeout = "3s"
	_, err := s.a.Run(t.Context(), in)
	require.Equal(t, errs.Operator, errs.ClassOf(err))
	require.ErrorContains(t, err, "it has not ended within 3s")
	s.nothingLeft()
}

func TestMuchAndBinaryOutputIsBounded(t *testing.T) {
	s := newSite(t)
	_, err := s.a.Run(t.Context(), s.in(play(`    - ansible.builtin.command: sh -c "head -c 5000000 /dev/zero | tr '\\0' x; printf '\\033[2J\\001\\377\\n'"
      register: much
    - ansible.builtin.debug: {var: much.stdout}
`)))
	require.NoError(t, err)
	log := s.log()
	require.Greater(t, len(log), 5_000_000)
	require.Less(t, len(log), 20<<20)
	require.NotContains(t, log, "\x1b")
	require.Contains(t, log, "PLAY RECAP")
}

func TestConnectionVariablesAreNotForExtraVars(t *testing.T) {
	s := newSite(t)
	in := s.in(play("    - ansible.builtin.ping:\n"))
	in.Ansible.ExtraVars = map[string]any{"ansible_host": "192.0.2.1"}
	_, err := s.a.Run(t.Context(), in)
	require.ErrorContains(t, err, "spec.ansible.extraVars: use: ansible_host says how a server is reached")
	_, err = s.a.Check(t.Context(), CheckIn{Owner: in.Owner, Bundle: in.Bundle, Ansible: in.Ansible})
	require.Equal(t, errs.Permanent, errs.ClassOf(err))
}

func TestABundleThatIsNotThereOrDamagedIsSaid(t *testing.T) {
	s := newSite(t)
	in := s.in(play("    - ansible.builtin.ping:\n"))
	path := s.blobs.dir + "/bundles/" + in.Bundle[7:] + ".tar.zst"
	require.NoError(t, os.WriteFile(path, []byte("x"), 0o600))
	_, err := s.a.Run(t.Context(), in)
	require.ErrorContains(t, err, "is damaged")
	require.NoError(t, os.Remove(path))
	_, err = s.a.Run(t.Context(), in)
	require.ErrorContains(t, err, "is not in the store")
	in.Bundle = "../../etc/passwd"
	_, err = s.a.Run(t.Context(), in)
	require.ErrorContains(t, err, "is not a digest")
	s.nothingLeft()
}

func TestTheHeartbeatShowsTheTask(t *testing.T) {
	s := newSite(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	seen := make(chan Progress, 1)
	s.a.beat = func(_ context.Context, p Progress) {
		if p.Task == "Second" && p.Recap["db"].OK == 1 {
			select {
			case seen <- p:
			default:
			}
		}
	}
	_, err := s.a.Run(ctx, s.in(play("    - {name: First, ansible.builtin.ping: }\n    - {name: Second, ansible.builtin.command: sleep 1}\n")))
	require.NoError(t, err)
	p := <-seen
	require.Equal(t, "Set up", p.Play)
	require.NotEmpty(t, p.RunID)
}
