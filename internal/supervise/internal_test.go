package supervise

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestStatIsReadPastHostileCommandNames(t *testing.T) {
	fields := strings.Repeat(" 0", 18) + " 4242 1"
	for _, name := range []string{"burrow", "a b", ") R 1 (", "((("} {
		got, err := parseStat("17 (" + name + ") S" + fields)
		require.NoError(t, err, name)
		require.Equal(t, stat{state: "S", startTicks: 4242}, got, name)
	}
	for _, text := range []string{"", "17 sh S 1", "17 (sh) S 1 2"} {
		_, err := parseStat(text)
		require.Error(t, err, text)
	}
}

func FuzzStat(f *testing.F) {
	f.Add("17 (sh) S" + strings.Repeat(" 0", 18) + " 4242")
	f.Fuzz(func(_ *testing.T, text string) { _, _ = parseStat(text) })
}

func TestAProgramThatCouldNotBeRecordedNeverRuns(t *testing.T) {
	dir := t.TempDir()
	mark := filepath.Join(dir, "ran")
	_, err := spawn(Command{Path: "/bin/sh", Args: []string{"-c", "echo > " + mark}}, filepath.Join(dir, "log"),
		func(Identity) error { return errors.New("disk full") })
	require.ErrorContains(t, err, "disk full")
	require.NoFileExists(t, mark)
}

func TestIdentityIsRecordedBeforeTheProgramRunsAndStaysItsOwn(t *testing.T) {
	dir := t.TempDir()
	mark := filepath.Join(dir, "ran")
	var recorded Identity
	p, err := spawn(Command{Path: "/bin/sh", Args: []string{"-c", "echo $$ > " + mark}}, filepath.Join(dir, "log"), func(id Identity) error {
		require.NoFileExists(t, mark)
		recorded = id
		return nil
	})
	require.NoError(t, err)
	<-p.exited
	require.Equal(t, recorded, p.id)
	text, err := os.ReadFile(mark)
	require.NoError(t, err)
	require.Equal(t, fmt.Sprintln(recorded.PID), string(text))
	require.ErrorIs(t, p.signal(0), ErrGone)
}

func TestNotifySocketIsNotHandedOn(t *testing.T) {
	t.Setenv("NOTIFY_SOCKET", "/run/systemd/notify")
	require.NotContains(t, environment(), "NOTIFY_SOCKET=/run/systemd/notify")
}

func TestLogsRotateInPlaceAndKeepThree(t *testing.T) {
	log := filepath.Join(t.TempDir(), "worker.log")
	writer, err := os.OpenFile(log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o640)
	require.NoError(t, err)
	defer writer.Close()
	for _, text := range []string{"one", "two", "three", "four", "five"} {
		_, err := writer.WriteString(text)
		require.NoError(t, err)
		require.NoError(t, rotate(log, 1))
	}
	for name, want := range map[string]string{log: "", log + ".1": "five", log + ".2": "four", log + ".3": "three"} {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		require.Equal(t, want, string(text), name)
	}
	require.NoFileExists(t, log+".4")
	require.NoError(t, rotate(log, 100))
	require.NoError(t, rotate(filepath.Join(t.TempDir(), "absent.log"), 1))
}
