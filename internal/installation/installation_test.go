package installation_test

import (
	"context"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"burrow.dev/burrow/internal/config"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/internal/installation"
)

// accounts stands for the system's, so that a test adds none.
type accounts struct{ missing bool }

func (a accounts) EnsureGroup(context.Context, string) (int, bool, error) {
	return os.Getgid(), a.missing, nil
}

func (a accounts) EnsureUser(context.Context, string) (bool, error) { return a.missing, nil }

func configure(t *testing.T, dir string, ports installation.Ports) *installation.Configuration {
	t.Helper()
	folder, err := installation.OpenFolder(dir)
	require.NoError(t, err)
	c, err := installation.Configure(t.Context(), folder, installation.Settings{Ports: ports}, accounts{})
	require.NoError(t, err)
	return c
}

func mode(t *testing.T, path string) fs.FileMode {
	t.Helper()
	info, err := os.Stat(path)
	require.NoError(t, err)
	return info.Mode().Perm()
}

func TestConfigurationSaysWhereEverythingIsAndWhoMayReadIt(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "burrow")
	c := configure(t, dir, installation.Ports{})

	require.Equal(t, installation.Ports{Temporal: 7233, WebUI: 8233, Etcd: 2379}, c.Ports)
	require.Equal(t, fs.FileMode(0o711), mode(t, dir))
	require.Equal(t, fs.FileMode(0o640), mode(t, filepath.Join(dir, "client.json")))
	require.Equal(t, fs.FileMode(0o600), mode(t, filepath.Join(dir, "worker.json")))
	require.Equal(t, fs.FileMode(0o600), mode(t, filepath.Join(dir, "master.key")))

	var client config.Client
	text, err := os.ReadFile(filepath.Join(dir, "client.json"))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &client))
	require.Equal(t, "127.0.0.1:7233", client.Temporal.Address)
	require.Equal(t, filepath.Join(dir, "gateway.sock"), client.Gateway.Socket)
	require.NotContains(t, string(text), "etcd", "the CLI never talks to etcd")
	_, err = client.Temporal.TLS.Client()
	require.NoError(t, err)

	var worker config.Worker
	text, err = os.ReadFile(filepath.Join(dir, "worker.json"))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &worker))
	require.Equal(t, []string{"https://127.0.0.1:2379"}, worker.Etcd.Endpoints)
	require.Equal(t, "file://"+dir+"/blobs", worker.Blobs)
	require.NotContains(t, worker.Host.Name, ".")
	require.NotEmpty(t, worker.Host.Name)
	_, err = worker.Etcd.TLS.Client()
	require.NoError(t, err)
}

func TestConfigureAgainKeepsPortsAndWhatWasEdited(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "burrow")
	first := configure(t, dir, installation.Ports{Temporal: 17233, WebUI: 18233, Etcd: 12379})
	edited := first.Worker
	edited.Host.Accelerator, edited.Host.Name = "tcg", "kvm1"
	text, err := json.Marshal(edited)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "worker.json"), text, 0o600))

	again := configure(t, dir, installation.Ports{Etcd: 22379})
	require.Equal(t, installation.Ports{Temporal: 17233, WebUI: 18233, Etcd: 22379}, again.Ports)
	require.Equal(t, "tcg", again.Worker.Host.Accelerator)
	require.Equal(t, "kvm1", again.Worker.Host.Name)
	require.Empty(t, again.Said)
}

func TestAFolderWithOtherThingsInItIsRefusedUntouched(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Chmod(dir, 0o750))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "passwd"), nil, 0o600))
	_, err := installation.OpenFolder(dir)
	require.ErrorIs(t, err, errs.ErrNotManaged)
	require.ErrorContains(t, err, "--data-dir")
	require.Equal(t, fs.FileMode(0o750), mode(t, dir))
}

func TestAPathTooLongForASocketIsRefusedBeforeAnythingIsMade(t *testing.T) {
	dir := filepath.Join(t.TempDir(), strings.Repeat("x", 120))
	_, err := installation.OpenFolder(dir)
	require.ErrorContains(t, err, "too long")
	require.NoDirExists(t, dir)
}

func TestABrokenConfigurationIsNamedAndNotOverwritten(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "burrow")
	configure(t, dir, installation.Ports{})
	file := filepath.Join(dir, "worker.json")
	require.NoError(t, os.WriteFile(file, []byte("{"), 0o600))
	_, err := installation.Configure(t.Context(), installation.Folder(dir), installation.Settings{}, accounts{})
	require.ErrorContains(t, err, file)
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, "{", string(text))
}

func TestMadeAccountsAreMentioned(t *testing.T) {
	folder, err := installation.OpenFolder(filepath.Join(t.TempDir(), "burrow"))
	require.NoError(t, err)
	c, err := installation.Configure(t.Context(), folder, installation.Settings{}, accounts{missing: true})
	require.NoError(t, err)
	require.Contains(t, strings.Join(c.Said, "\n"), "made group burrow")
	require.Contains(t, strings.Join(c.Said, "\n"), "made user burrow-ansible")
}

func TestAWorkerIsReplacedWhenItsConfigurationChanges(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "burrow")
	version := func(c *installation.Configuration) [2]string {
		parts, err := c.Parts("/bin/burrow", "/bin/burrow-devstack")
		require.NoError(t, err)
		return [2]string{parts[0].Version, parts[1].Version}
	}
	first := version(configure(t, dir, installation.Ports{}))
	require.Equal(t, first, version(configure(t, dir, installation.Ports{})))
	other := version(configure(t, dir, installation.Ports{WebUI: 9999}))
	require.NotEqual(t, first[0], other[0])
	require.Equal(t, first[1], other[1], "the worker does not care where the Web UI is")
	other = version(configure(t, dir, installation.Ports{Etcd: 9998}))
	require.NotEqual(t, first[1], other[1])
}

func TestSettingsAreKeptUntilOthersAreAskedFor(t *testing.T) {
	folder, err := installation.OpenFolder(filepath.Join(t.TempDir(), "burrow"))
	require.NoError(t, err)
	ca := filepath.Join(t.TempDir(), "ca.pem")
	require.NoError(t, os.WriteFile(ca, nil, 0o644))
	yes := true
	asked := installation.Settings{HostName: "kvm1", Accelerator: "tcg", KeysCA: ca, KeysAllowPrivate: &yes}
	for _, settings := range []installation.Settings{asked, {}} {
		c, err := installation.Configure(t.Context(), folder, settings, accounts{})
		require.NoError(t, err)
		require.Equal(t, "kvm1", c.Worker.Host.Name)
		require.Equal(t, "tcg", c.Worker.Host.Accelerator)
		require.Equal(t, config.Keys{CA: ca, AllowPrivate: true}, c.Worker.Keys)
	}
	c, err := installation.Configure(t.Context(), folder, installation.Settings{Accelerator: "auto"}, accounts{})
	require.NoError(t, err)
	require.Empty(t, c.Worker.Host.Accelerator)

	for name, settings := range map[string]installation.Settings{
		"placed by this name": {HostName: "kvm2"},
		"auto, kvm or tcg":    {Accelerator: "xen"},
		"--keys-ca":           {KeysCA: "/nowhere/ca.pem"},
	} {
		_, err := installation.Configure(t.Context(), folder, settings, accounts{})
		require.ErrorContains(t, err, name)
	}
}
