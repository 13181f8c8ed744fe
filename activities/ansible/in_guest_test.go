package ansible

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	guests "burrow.dev/burrow/activities/guest"
	"burrow.dev/burrow/internal/ansiblex"
	"burrow.dev/burrow/internal/ansiblex/inguest"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/manifest"
)

// inside is a site whose server runs its playbooks itself; this machine is its guest, with a
// folder for runs of its own.
func inside(t *testing.T) *site {
	t.Helper()
	s := newSite(t)
	require.NoError(t, os.MkdirAll(inguest.Root, 0o755))
	require.NoError(t, syscall.Mount("tmpfs", inguest.Root, "tmpfs", 0, ""))
	t.Cleanup(func() { require.NoError(t, syscall.Unmount(inguest.Root, syscall.MNT_DETACH)) })
	s.a.o.Guests = guests.New(guests.Options{Dialer: s.nets, Keys: s.keys})
	s.a.askEvery = 50 * time.Millisecond
	return s
}

func (s *site) inGuest(key string, files map[string]string) RunIn {
	in := s.in(files)
	in.InGuest, in.Ansible.RemotePlaybook = key, true
	return in
}

// hostile puts a runner into the guest that says what it likes.
func hostile(t *testing.T, key, script string) {
	t.Helper()
	dir := filepath.Join(inguest.Root, key)
	require.NoError(t, os.MkdirAll(dir, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "run"), []byte(script), 0o700))
}

func TestAPlaybookRunsInTheGuestAndItsEndIsKnownHere(t *testing.T) {
	s := inside(t)
	var tasks []string
	s.a.beat = func(_ context.Context, p Progress) { tasks = append(tasks, p.Task) }
	in := s.inGuest("run-1", play("    - name: Say\n      ansible.builtin.debug: {msg: \"here is {{ inventory_hostname }} \\e[31m\"}\n    - ansible.builtin.debug: {msg: \"{{ 'x' * 300000 }}\"}\n"))
	out, err := s.a.Run(t.Context(), in)
	require.NoError(t, err)
	require.Equal(t, manifest.Recap{OK: 2}, out.Recap["db"])
	require.Contains(t, strings.Join(tasks, "\n"), "ansible.builtin.debug")
	log := s.log()
	require.Contains(t, log, "here is db")
	require.Greater(t, len(log), 300000, "in several answers")
	require.NotContains(t, log, "\x1b")
	s.nothingLeft()

	again, err := s.a.Run(t.Context(), in)
	require.NoError(t, err)
	require.Equal(t, out.Recap, again.Recap, "an attempt that comes later finds what the run did, and does not run it again")
	require.NotEqual(t, out.RunID, again.RunID)
}

func TestATaskThatFailsInTheGuestIsForAPerson(t *testing.T) {
	s := inside(t)
	in := s.inGuest("run-2", play("    - name: Cannot\n      ansible.builtin.fail: {msg: no such package}\n"))
	in.Ansible.Retries = 1
	_, err := s.a.Run(t.Context(), in)
	require.Equal(t, errs.Operator, errs.ClassOf(err))
	require.ErrorContains(t, err, `task "Cannot" on db: no such package (after 1 retries)`)
	require.ErrorContains(t, err, "see burrow logs db; then burrow retry server/db")
	var ended *endedError
	require.ErrorAs(t, err, &ended)
	require.Equal(t, manifest.Recap{Failed: 1}, ended.out.Recap["db"])
	require.Contains(t, s.log(), "retry 1 of 1")
	s.nothingLeft()

	in.InGuest = "run-3"
	in.Ansible.Retries, in.Bundle = 0, s.bundle(play("    - ansible.builtin.debug: {}\n"))
	out, err := s.a.Run(t.Context(), in)
	require.NoError(t, err, "mended")
	require.Equal(t, manifest.Recap{OK: 1}, out.Recap["db"])
	require.NoDirExists(t, filepath.Join(inguest.Root, "run-2"), "an earlier run leaves nothing behind")
}

func TestWhatARunInTheGuestLacksIsSaid(t *testing.T) {
	s := inside(t)
	in := s.inGuest("run-4", play("    - ansible.builtin.debug: {}\n"))
	in.Ansible.Pull, in.Ansible.RemotePlaybook = &manifest.Pull{URL: "file:///nonexistent"}, false
	_, err := s.a.Run(t.Context(), in)
	require.Equal(t, errs.Operator, errs.ClassOf(err))
	require.ErrorContains(t, err, "the guest could not fetch the playbook")
	require.Contains(t, s.log(), "/nonexistent")

	in = s.inGuest("run-5", map[string]string{"site.yaml": "- hosts: [\n"})
	_, err = s.a.Run(t.Context(), in)
	require.Equal(t, errs.Operator, errs.ClassOf(err))
	require.ErrorContains(t, err, "Ansible refuses it: ")

	in = s.inGuest("run-6", play("    - ansible.builtin.debug: {}\n"))
	in.Ansible.ExtraVars = map[string]any{"token": "secret:token"}
	_, err = s.a.Run(t.Context(), in)
	require.Equal(t, errs.Operator, errs.ClassOf(err))
	require.ErrorContains(t, err, "secrets are not given to a run in the guest")

	in = s.inGuest("run-7", play("    - ansible.builtin.debug: {}\n"))
	in.Bundle = "sha256:" + strings.Repeat("0", 64)
	_, err = s.a.Run(t.Context(), in)
	require.Equal(t, errs.Operator, errs.ClassOf(err), "the server stands: applying again mends it")
	s.nothingLeft()
}

func TestACancelledRunInTheGuestIsEndedThere(t *testing.T) {
	s := inside(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s.a.beat = func(_ context.Context, p Progress) {
		if p.Task == "Long" && len(sleepers(t, "984")) > 0 {
			cancel()
		}
	}
	in := s.inGuest("run-8", play("    - name: Long\n      ansible.builtin.command: sleep 984\n"))
	_, err := s.a.Run(ctx, in)
	require.ErrorIs(t, err, context.Canceled)
	require.Eventually(t, func() bool { return len(sleepers(t, "984")) == 0 }, 10*time.Second, 20*time.Millisecond)
	require.Contains(t, s.log(), "TASK [Long]")
	s.nothingLeft()
}

func TestARunThatTheGuestsRestartCutOffIsForAPerson(t *testing.T) {
	s := inside(t)
	hostile(t, "run-9", `case $1 in read) echo boot-2; echo '{"stage":"play","exit":0,"ended":false,"try":1,"boot":"boot-1"}'; echo; echo;; esac`)
	_, err := s.a.Run(t.Context(), s.inGuest("run-9", play("    - ansible.builtin.debug: {}\n")))
	require.Equal(t, errs.Operator, errs.ClassOf(err))
	require.ErrorContains(t, err, "the guest was started again while it ran")
	s.nothingLeft()
}

func TestAGuestThatLiesIsHeldAndHarmsNothing(t *testing.T) {
	state := `{"stage":"play","exit":0,"ended":true,"try":1,"boot":"b"}`
	cases := map[string]struct{ script, says string }{
		"no JSON":                {`printf 'b\n\033[31mhello\n\n\n'`, "its state is no JSON"},
		"more lines":             {`printf 'b\n` + state + `\n\n\n\n\n\n'`, "has not the form"},
		"no base64":              {`printf 'b\n` + state + `\n!!\n\n'`, "its log is no base64"},
		"endless":                {`yes`, "has not the form"},
		"a try without end":      {`printf 'b\n{"stage":"play","exit":0,"ended":false,"try":4000000000,"boot":"b"}\n\n\n'`, "out of range"},
		"a stage of its own":     {`printf 'b\n{"stage":"done","exit":0,"ended":true,"try":1,"boot":"b"}\n\n\n'`, "in no stage that there is"},
		"success without a task": {`printf 'b\n` + state + `\n\n\n'`, "it ran nothing on db"},
		"a refusal in colour":    {`printf '\033[31mgo away\n'; exit 3`, "go away"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s := inside(t)
			hostile(t, "run-10", "case $1 in read) "+c.script+";; esac")
			_, err := s.a.Run(t.Context(), s.inGuest("run-10", play("    - ansible.builtin.debug: {}\n")))
			require.Equal(t, errs.Operator, errs.ClassOf(err))
			require.ErrorContains(t, err, c.says)
			require.NotContains(t, err.Error(), "\x1b")
			require.NotContains(t, s.log(), "\x1b")
			s.nothingLeft()
		})
	}
}

func TestARunThatADeadWorkerFollowedGoesOnInTheGuestAndIsFoundAgain(t *testing.T) {
	s := inside(t)
	in := s.inGuest("run-11", play("    - ansible.builtin.debug: {}\n"))
	rec := ansiblex.Record{ID: "20260101-000000-dead", Owner: in.Owner, CreatedAt: time.Now(), ServerUIDs: []string{"uid-db-0001"}, InGuest: true}
	user, err := ansiblex.LookupUser(runner)
	require.NoError(t, err)
	_, err = ansiblex.MakeFolder(s.dir, user, rec)
	require.NoError(t, err)
	out, err := s.a.Run(t.Context(), in)
	require.NoError(t, err)
	require.Equal(t, manifest.Recap{OK: 1}, out.Recap["db"])
	left, err := s.a.Logs().Open(t.Context(), manifest.Record{Metadata: manifest.RecordMeta{UID: "uid-db-0001"}}, rec.ID, false)
	require.NoError(t, err)
	text, err := io.ReadAll(left)
	require.NoError(t, err)
	require.Contains(t, string(text), "in the guest it goes on")
	s.nothingLeft()
}
