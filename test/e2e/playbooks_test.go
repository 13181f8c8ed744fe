package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestTwoServersWithOneAddressAreConfiguredSideBySideAndTogether builds two servers on two
// isolated networks of one subnet, with one address: each gets its own playbook, one play
// over both reaches each, and a restart in the middle of it; what their secret is, nothing
// that was written on the host tells.
func TestTwoServersWithOneAddressAreConfiguredSideBySideAndTogether(t *testing.T) {
	longForm(t, "boots two guests, and one of them again")
	s := newStack(t)
	s.image("local-debian")
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(dir, os.DirFS("testdata/twins")))
	const word = "xyzzy-4d1c6f-plugh"
	s.setSecret("twins-word", word)

	s.run("apply", "-f", filepath.Join(dir, "twins.yaml"))
	for _, name := range []string{"castor", "pollux"} {
		require.Equal(t, name+"\n", s.guestFile(name, "/etc/own"))
		require.Equal(t, name+" of castor, pollux\n", s.guestFile(name, "/etc/both-again"), "also after the restart")
		require.Contains(t, s.run("logs", name), "the word is ***")
	}
	require.Less(t, s.uptime("pollux"), s.uptime("castor"))

	t.Run("what differs from the playbook is found, and put right on both at once", func(t *testing.T) {
		for _, name := range []string{"castor", "pollux"} {
			s.run("ssh", name, "--", "echo somebody else | sudo tee /etc/own")
		}
		code, out := s.code("configure", "-l", "app=twins", "--check")
		require.Equal(t, 3, code, out)
		require.Equal(t, "somebody else\n", s.guestFile("castor", "/etc/own"), "a check changes nothing")
		s.run("configure", "-l", "app=twins")
		for _, name := range []string{"castor", "pollux"} {
			require.Equal(t, name+"\n", s.guestFile(name, "/etc/own"))
		}
		castor, pollux := s.lastRun("castor"), s.lastRun("pollux")
		require.True(t, castor.Started.Before(pollux.Ended) && pollux.Started.Before(castor.Ended), "side by side: %v, %v", castor, pollux)
		code, out = s.code("configure", "-l", "app=twins", "--check")
		require.Zero(t, code, out)
	})
	t.Run("the secret is in nothing that was written", func(t *testing.T) {
		require.Empty(t, holding(t, word, s.data, s.temp, "/var/log", "/run"))
	})
	s.run("delete", "playbook/both", "server/castor", "server/pollux", "network/left", "network/right", "-y")
}

func (s *stack) setSecret(name, value string) {
	s.t.Helper()
	set := s.command(s.t.Context(), "secret", "set", name)
	set.Stdin = strings.NewReader(value + "\n")
	out, err := set.CombinedOutput()
	require.NoError(s.t, err, "%s", out)
}

func (s *stack) guestFile(server, path string) string {
	s.t.Helper()
	cmd := s.command(s.t.Context(), "ssh", server, "--", "cat", path)
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	require.NoError(s.t, err, "%s", &complaint)
	return string(out)
}

// uptime is how long a guest runs, in seconds.
func (s *stack) uptime(server string) float64 {
	s.t.Helper()
	first, _, _ := strings.Cut(s.guestFile(server, "/proc/uptime"), " ")
	seconds, err := strconv.ParseFloat(first, 64)
	require.NoError(s.t, err)
	return seconds
}

// span is when a run began and ended.
type span struct {
	Started time.Time `json:"started"`
	Ended   time.Time `json:"ended"`
}

// lastRun is a server's latest run of a playbook.
func (s *stack) lastRun(server string) (last span) {
	s.t.Helper()
	var history struct {
		Items []struct {
			Playbooks []span `json:"playbooks"`
		} `json:"items"`
	}
	out, err := s.command(s.t.Context(), "history", "server", server, "--step", "playbook", "-o", "json").Output()
	require.NoError(s.t, err)
	require.NoError(s.t, json.Unmarshal(out, &history))
	for _, op := range history.Items {
		for _, run := range op.Playbooks {
			if run.Started.After(last.Started) {
				last = run
			}
		}
	}
	require.False(s.t, last.Ended.IsZero(), "%s", out)
	return last
}

// holding are the files under the roots that have a text in them.
func holding(t *testing.T, text string, roots ...string) (all []string) {
	t.Helper()
	for _, root := range roots {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) || err == nil && !d.Type().IsRegular() {
				return nil
			}
			if err != nil {
				return err
			}
			content, err := os.ReadFile(path)
			if err == nil && bytes.Contains(content, []byte(text)) {
				all = append(all, path)
			}
			return nil
		})
		require.NoError(t, err)
	}
	return all
}
