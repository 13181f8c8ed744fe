package ansible

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"burrow.dev/burrow/activities"
	"burrow.dev/burrow/internal/ansiblex"
	"burrow.dev/burrow/manifest"
)

// stubborn starts everything that could outlive a run: a remote command over a
// ControlPersist master, a local fork, and a daemon that shed session and environment.
const stubborn = `    - name: Daemon
      ansible.builtin.command: "env -i PATH=/usr/bin:/bin setsid -f sleep 987"
      delegate_to: localhost
    - name: Fork
      ansible.builtin.command: sleep 986
      delegate_to: localhost
      async: 900
      poll: 0
    - name: Remote
      ansible.builtin.command: sleep 985
`

// sleepers lists the processes that run "sleep <n>".
func sleepers(t *testing.T, n string) []string {
	t.Helper()
	found, err := filepath.Glob("/proc/[0-9]*/cmdline")
	require.NoError(t, err)
	var out []string
	for _, f := range found {
		if cmd, err := os.ReadFile(f); err == nil && string(cmd) == "sleep\x00"+n+"\x00" {
			out = append(out, f)
		}
	}
	return out
}

func TestACancelledRunLeavesNoProcess(t *testing.T) {
	s := newSite(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var cancelled time.Time
	s.a.beat = func(_ context.Context, p Progress) {
		if p.Task == "Remote" && len(sleepers(t, "985")) > 0 && cancelled.IsZero() {
			require.NotEmpty(t, sleepers(t, "987"))
			require.NotEmpty(t, sleepers(t, "986"))
			cancelled = time.Now()
			cancel()
		}
	}
	_, err := s.a.Run(ctx, s.in(play(stubborn)))
	require.ErrorIs(t, err, context.Canceled)
	require.Less(t, time.Since(cancelled), 2*time.Second)
	require.Empty(t, sleepers(t, "987"), "the daemon")
	require.Empty(t, sleepers(t, "986"), "the fork")
	require.Contains(t, s.log(), "TASK [Remote]")
	s.nothingLeft()
}

func TestAFinishedRunLeavesNoProcess(t *testing.T) {
	s := newSite(t)
	_, err := s.a.Run(t.Context(), s.in(play(strings.Split(stubborn, "    - name: Remote")[0]+"    - ansible.builtin.ping:\n")))
	require.NoError(t, err)
	require.Empty(t, sleepers(t, "987"))
	s.nothingLeft()
}

// workerMain is a worker that runs what its argument says and never ends by itself.
func workerMain(arg string) int {
	var w struct {
		Site string
		In   RunIn
	}
	if json.Unmarshal([]byte(arg), &w) != nil {
		return 1
	}
	a, err := New(Options{RunsDir: w.Site, GalaxyDir: w.Site + "-galaxy", User: runner, Blobs: blobs{w.In.Owner}, Dialer: networks{}, Keys: anyKey{}})
	if err != nil {
		return 1
	}
	w.In.Owner = "server/db"
	if _, err = a.Run(context.Background(), w.In); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func TestWithoutTheRightToMakeNamespacesARunStillEndsWhole(t *testing.T) {
	s := newSite(t)
	in := s.in(play(`    - name: Leave something behind in a session of its own
      ansible.builtin.command: setsid -f sleep 967
      delegate_to: localhost
    - name: And a fork
      ansible.builtin.command: sleep 966
      delegate_to: localhost
      async: 900
      poll: 0
`))
	in.Owner = s.blobs.dir
	arg, err := json.Marshal(map[string]any{"Site": s.dir, "In": in})
	require.NoError(t, err)
	self, err := os.Executable()
	require.NoError(t, err)
	worker := exec.Command("setpriv", "--bounding-set=-sys_admin", "--inh-caps=-sys_admin", self, "worker", string(arg))
	out, err := worker.CombinedOutput()
	require.NoError(t, err, string(out))
	require.Empty(t, sleepers(t, "967"))
	require.Empty(t, sleepers(t, "966"))
	require.Contains(t, s.log(), "PLAY RECAP")
	s.nothingLeft()
}

func TestWhatAKilledWorkerLeftIsReaped(t *testing.T) {
	s := newSite(t)
	tasks := strings.Split(stubborn, "    - name: Remote")[0] + "    - name: Local\n      ansible.builtin.command: sleep 985\n      delegate_to: localhost\n"
	in := s.in(play(strings.ReplaceAll(tasks, "sleep 98", "sleep 97"))) // not those of another test's guest
	in.Owner = s.blobs.dir
	arg, err := json.Marshal(map[string]any{"Site": s.dir, "In": in})
	require.NoError(t, err)
	self, err := os.Executable()
	require.NoError(t, err)
	for _, how := range []string{"Reap", "ReapAll", "Run"} {
		t.Run(how, func(t *testing.T) {
			worker := exec.Command(self, "worker", string(arg))
			worker.Stderr = os.Stderr
			require.NoError(t, worker.Start())
			require.Eventually(t, func() bool { return len(sleepers(t, "975")) > 0 }, 30*time.Second, 50*time.Millisecond)
			require.NoError(t, worker.Process.Signal(syscall.SIGKILL))
			_ = worker.Wait()
			require.NotEmpty(t, marked(t), "the run survives its worker")

			switch how {
			case "Reap":
				_, err = s.a.Reap(t.Context(), ReapIn{Server: activities.Server{Name: "other", UID: "uid-other"}})
				require.NoError(t, err)
				require.NotEmpty(t, marked(t), "another server's run is none of its business")
				_, err = s.a.Reap(t.Context(), ReapIn{Server: activities.Server{Name: "db", UID: "uid-db-0001"}})
			case "ReapAll":
				err = s.a.ReapAll(t.Context())
			case "Run":
				next := s.in(play("    - ansible.builtin.shell: \"! pgrep -x -f 'sleep 97[567]'\"\n"))
				_, err = s.a.Run(t.Context(), next)
			}
			require.NoError(t, err, s.lastLog())
			for _, n := range []string{"975", "976", "977"} {
				require.Empty(t, sleepers(t, n))
			}
			s.nothingLeft()
			keys, err := s.blobs.List(t.Context(), "logs/uid-db-0001")
			require.NoError(t, err)
			first, err := os.ReadFile(filepath.Join(s.blobs.dir, keys[0]))
			require.NoError(t, err)
			require.Contains(t, string(first), "the run was cut off")
			require.NoError(t, os.RemoveAll(filepath.Join(s.blobs.dir, "logs")))
		})
	}
}

func TestAProcessThatHasTheNumberOfADeadRunIsLeftAlone(t *testing.T) {
	bystander := exec.Command("sleep", "984")
	require.NoError(t, bystander.Start())
	defer func() { _ = bystander.Process.Kill(); _ = bystander.Wait() }()
	require.NoError(t, ansiblex.Stop(t.Context(), ansiblex.Record{
		ID: "20260101-000000-dead", Process: &ansiblex.Process{PID: bystander.Process.Pid, Start: 1, Boot: "another"},
	}))
	require.Len(t, sleepers(t, "984"), 1)
}

func TestALaterRunTakesOverFromAnEarlierOne(t *testing.T) {
	s := newSite(t)
	var g errgroup.Group
	started := make(chan struct{})
	s.a.beat = func(_ context.Context, p Progress) {
		if p.Task == "Long" && len(sleepers(t, "983")) > 0 {
			select {
			case <-started:
			default:
				close(started)
			}
		}
	}
	g.Go(func() error {
		_, err := s.a.Run(t.Context(), s.in(play("    - {name: Long, ansible.builtin.command: sleep 983, delegate_to: localhost}\n")))
		return err
	})
	<-started
	_, err := s.a.Run(t.Context(), s.in(play("    - ansible.builtin.ping:\n")))
	require.NoError(t, err)
	require.ErrorContains(t, g.Wait(), "a newer run has taken over")
	require.Empty(t, sleepers(t, "983"))
	s.nothingLeft()
}

func TestAPlaybookSeesNothingOfTheWorker(t *testing.T) {
	s := newSite(t)
	t.Setenv("BURROW_TEST_SECRET", "planted-in-the-environment")
	secret := filepath.Join(s.dir, "worker.json")
	require.NoError(t, os.WriteFile(secret, []byte("planted-in-a-file"), 0o600))
	_, err := s.a.Run(t.Context(), s.in(play(fmt.Sprintf(`    - ansible.builtin.debug: {msg: "{{ lookup('pipe', 'cat %s 2>&1; cat %s/*/run.json 2>&1; ls %s 2>&1; id; env; cat /proc/1/environ; true') }}"}
    - ansible.builtin.debug: {msg: "key {{ lookup('pipe', 'SSH_AUTH_SOCK=$(dirname $HOME)/../agent.sock ssh-add -L') }}"}
    - ansible.builtin.debug: {msg: "mine {{ lookup('pipe', 'grep -rl PRIVATE $(dirname $(dirname $HOME)) 2>/dev/null || echo no private key') }}"}
`, secret, s.dir, s.dir))))
	require.NoError(t, err)
	log := s.log()
	require.NotContains(t, log, "planted-in")
	require.Contains(t, log, "uid=65534(nobody) gid=65534(nogroup) groups=65534(nogroup)")
	require.Contains(t, log, "key ssh-ed25519 ")
	require.Contains(t, log, "mine no private key")
	require.Contains(t, log, "Permission denied")
}

// TestTwoServersWithOneAddress is pitfall 68: isolated networks may have the same subnet.
func TestTwoServersWithOneAddressAreToldApart(t *testing.T) {
	s := newSite(t)
	other := startGuest(t)
	s.nets["web-net"], s.keys["uid-web-0002"] = other, other.management
	in := s.in(play("    - ansible.builtin.shell: echo {{ inventory_hostname }} speaks with $SSH_CONNECTION\n      register: r\n    - ansible.builtin.debug: {var: r.stdout}\n"))
	in.Hosts = append(in.Hosts, Host{
		Server: activities.Server{Name: "web", UID: "uid-web-0002"}, Network: "web-net", Address: "172.16.90.2", Login: "root", HostKeys: []string{line(other.hostKey)},
	})
	out, err := s.a.Run(t.Context(), in)
	require.NoError(t, err, s.lastLog())
	require.Len(t, out.Recap, 2)
	for name, g := range map[string]*guest{"db": s.guest, "web": other} {
		_, port, _ := strings.Cut(g.addr, ":")
		require.Regexp(t, name+` speaks with 127\.0\.0\.1 \d+ 127\.0\.0\.1 `+port, s.log())
	}
	require.FileExists(t, filepath.Join(s.blobs.dir, "logs/uid-web-0002", out.RunID+".log"))
}

func TestALogIsFollowedWhileItGrows(t *testing.T) {
	s := newSite(t)
	rec := manifest.Record{Metadata: manifest.RecordMeta{UID: "uid-db-0001"}}
	var g errgroup.Group
	g.Go(func() error {
		_, err := s.a.Run(t.Context(), s.in(play("    - {name: First, ansible.builtin.ping: }\n    - {name: Second, ansible.builtin.command: sleep 1}\n")))
		return err
	})
	var r io.ReadCloser
	require.Eventually(t, func() bool {
		var err error
		r, err = s.a.Logs().Open(t.Context(), rec, "", true)
		return err == nil
	}, 10*time.Second, 10*time.Millisecond)
	text, err := io.ReadAll(r)
	require.NoError(t, err)
	require.NoError(t, r.Close())
	require.NoError(t, g.Wait())
	require.Contains(t, string(text), "PLAY RECAP")
	require.Equal(t, s.log(), string(text))
	_, err = s.a.Logs().Open(t.Context(), rec, "../../bundles/x", false)
	require.Error(t, err)
}
