package ansiblex

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/manifest"
)

func TestConfigurationIsReadAsPythonDoes(t *testing.T) {
	c := parseConfiguration([]byte(`# comment
[defaults]
Forks = 50
inventory: hosts.yaml, more.ini ; why
callbacks_enabled = a,
   b
roles_path=roles:../shared
[ssh_connection]
pipelining
; comment
[broken
`))
	require.Equal(t, "50", c["defaults.forks"])
	require.Equal(t, []string{"hosts.yaml", "more.ini"}, c.list("defaults.inventory"))
	require.Equal(t, []string{"a", "b"}, c.list("defaults.callbacks_enabled"))
	require.Equal(t, []string{"/x/roles", "/shared"}, c.paths("/x", "defaults.roles_path"))
	require.True(t, c.has("ssh_connection.pipelining"))
}

func FuzzConfiguration(f *testing.F) {
	f.Add([]byte("[a]\nb=c\n d\n"))
	f.Fuzz(func(_ *testing.T, data []byte) { parseConfiguration(data).list("defaults.inventory") })
}

func TestTheEnvironmentIsOursAndTheUsersChoicesStay(t *testing.T) {
	t.Setenv("AWS_SECRET_ACCESS_KEY", "worker's")
	f := &Folder{ID: "run-1", Dir: "/r", user: User{Name: "u"}}
	env := strings.Join(f.environment("", configuration{}, ""), "\n")
	require.NotContains(t, env, "worker's")
	require.Contains(t, env, "BURROW_RUN=run-1\n")
	require.Contains(t, env, "ANSIBLE_TIMEOUT=60\n")
	require.Contains(t, env, "ANSIBLE_CONFIG=/r/etc/ansible.cfg\n")

	cfg := parseConfiguration([]byte("[defaults]\ntimeout=5\ncallback_plugins=cb\nvars_plugins_enabled=mine\nhost_key_checking=false\n[inventory]\nenable_plugins=ini,script\n"))
	env = strings.Join(f.environment("/r/work/bundle/ansible.cfg", cfg, ""), "\n")
	require.NotContains(t, env, "ANSIBLE_TIMEOUT")
	require.Contains(t, env, "ANSIBLE_CALLBACK_PLUGINS=/r/etc/plugins:/r/work/bundle/cb:")
	require.Contains(t, env, "ANSIBLE_VARS_ENABLED=mine,host_group_vars\n")
	require.Contains(t, env, "ANSIBLE_INVENTORY_ENABLED=ini,script,yaml\n")
	require.Contains(t, env, "ANSIBLE_HOST_KEY_CHECKING=True\n")
}

func TestEventsAreCleanedCountedAndBounded(t *testing.T) {
	input := `{"event":"play","play":"Set\u001b[2J up"}
not json
{"event":"result","host":"db","task":"a","status":"changed"}
{"event":"result","host":"db","task":"b","status":"failed","message":"` + strings.Repeat("x", 5000) + `"}
{"event":"result","host":"web","task":"b","status":"unreachable"}
` + `{"event":"task","task":"` + strings.Repeat("y", maxEventLine) + `"}
{"event":"result","host":"db","task":"c","status":"ignored"}
{"event":"task","task":"last"`
	tally := newTally()
	var events []Event
	require.NoError(t, readEvents(strings.NewReader(input), nil, func(e Event) { events = append(events, e); tally.add(e) }))
	require.Len(t, events, 5)
	require.Equal(t, "Set up", events[0].Play)
	require.Equal(t, manifest.Recap{OK: 2, Changed: 1, Failed: 1, Ignored: 1}, tally.recap["db"])
	require.LessOrEqual(t, len([]rune(tally.failed["db"].Message)), maxMessage)
	require.Contains(t, tally.unreachable, "web")

	// Ansible's own recap has the last word: what was rescued is no failure.
	tally.add(Event{Event: EventRecap, Recap: map[string]manifest.Recap{"db": {OK: 3, Rescued: 1}, "web": {Unreachable: 1}}})
	tally.settle()
	require.Empty(t, tally.failed)
	require.Contains(t, tally.unreachable, "web")
}

func FuzzEvents(f *testing.F) {
	f.Add([]byte(`{"event":"recap","recap":{"h":{"ok":1}}}` + "\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		tally := newTally()
		require.NoError(t, readEvents(bytes.NewReader(data), nil, tally.add))
		tally.settle()
	})
}

func TestALongLogKeepsItsEnd(t *testing.T) {
	f := &Folder{ID: "r", Dir: t.TempDir()}
	log, err := f.OpenLog()
	require.NoError(t, err)
	log.limit = 1000
	s := &stream{log: log, last: &lastLines{}}
	for range 100000 {
		_, err := s.Write([]byte("0123456789\n"))
		require.NoError(t, err)
	}
	_, err = s.Write([]byte("the end\x1b[0m without newline"))
	require.NoError(t, err)
	s.flush()
	require.NoError(t, log.Close())
	text, err := os.ReadFile(f.LogFile())
	require.NoError(t, err)
	require.Less(t, len(text), 1000+maxTail+100)
	require.Contains(t, string(text), "bytes are left out here\n")
	require.True(t, strings.HasSuffix(string(text), "the end without newline\n"))
}

func TestRunIDsSortByTime(t *testing.T) {
	now := time.Now()
	require.Less(t, NewRunID(now), NewRunID(now.Add(time.Second)))
}

func TestAStrangeRunsFolderIsRefusedBeforeAnythingIsMade(t *testing.T) {
	for _, dir := range []string{"/tmp/with space", "/tmp/" + strings.Repeat("long", 30), "/tmp/{{x}}", "/tmp/50%"} {
		_, err := MakeFolder(dir, User{UID: 1, GID: 1}, Record{ID: "r"})
		require.Equal(t, errs.Operator, errs.ClassOf(err))
		require.NoDirExists(t, dir)
	}
}

func TestAProgramInAClosedFolderIsCopied(t *testing.T) {
	runs, err := os.MkdirTemp("/tmp", "bw")
	require.NoError(t, err)
	defer os.RemoveAll(runs)
	home := filepath.Join(runs, "home")
	require.NoError(t, os.Mkdir(home, 0o700))
	program := filepath.Join(home, "burrow")
	require.NoError(t, os.WriteFile(program, []byte("#!/bin/sh\n"), 0o755))
	one, err := ReachableProgram(runs, program)
	require.NoError(t, err)
	require.Equal(t, runs, filepath.Dir(one))
	again, err := ReachableProgram(runs, program)
	require.NoError(t, err)
	require.Equal(t, one, again)
	require.NoError(t, os.WriteFile(program, []byte("#!/bin/sh\nexit\n"), 0o755))
	two, err := ReachableProgram(runs, program)
	require.NoError(t, err)
	require.NotEqual(t, one, two)
	require.NoFileExists(t, one)

	path, err := ReachableProgram(runs, "/bin/true")
	require.NoError(t, err)
	require.Equal(t, "/usr/bin/true", path)
}

func TestRecordsOfOtherFoldersAreNotTaken(t *testing.T) {
	runs := tree(t, map[string]string{
		"a/run.json": `{"id":"a","serverUIDs":["u"]}`, "b/run.json": `{"id":"a"}`, "c/other": "", ".new-d/run.json": `{"id":"d"}`,
	})
	records, err := Records(runs)
	require.NoError(t, err)
	require.Len(t, records, 1)
	require.True(t, records[0].Of("u"))
	none, err := Records(filepath.Join(runs, "nosuch"))
	require.NoError(t, err)
	require.Empty(t, none)
}
