package installation_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"burrow.dev/burrow/internal/config"
	"burrow.dev/burrow/internal/installation"
)

// accountsEnv is set in the process that has an /etc of its own.
const accountsEnv = "INSTALLATION_TEST_ACCOUNTS"

// withOwnAccounts runs the tests in a mount namespace with a copy of /etc that lacks
// burrow's accounts: the machine's accounts stay as they are, however the tests end.
func withOwnAccounts(m *testing.M) int {
	if os.Geteuid() != 0 {
		return m.Run()
	}
	if os.Getenv(accountsEnv) == "" {
		return runSelf()
	}
	if err := coverEtc(); err != nil {
		fmt.Fprintln(os.Stderr, "cover /etc:", err)
		return 1
	}
	return m.Run()
}

// runSelf runs this test binary again in a mount namespace of its own.
func runSelf() int {
	self := exec.Command("/proc/self/exe", os.Args[1:]...)
	self.Args[0] = os.Args[0]
	self.Env = append(os.Environ(), accountsEnv+"=1")
	self.Stdin, self.Stdout, self.Stderr = os.Stdin, os.Stdout, os.Stderr
	self.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
	err := self.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.ExitCode()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "run tests in a namespace:", err)
		return 1
	}
	return 0
}

// coverEtc mounts a copy of /etc over it; the mount ends with the namespace.
func coverEtc() error {
	const script = `copy=$(mktemp -d) && mount -t tmpfs etc "$copy" && cp -a /etc/. "$copy" && mount --move "$copy" /etc && rmdir "$copy"
		for user in burrow-ansible; do userdel "$user" 2>/dev/null || true; done
		for group in burrow burrow-ansible; do groupdel "$group" 2>/dev/null || true; done`
	output, err := exec.Command("/bin/sh", "-ec", script).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s", err, output)
	}
	return nil
}

func TestAccountsAreMadeOnceWithoutShellOrPassword(t *testing.T) {
	if os.Getenv(accountsEnv) == "" {
		t.Skip("making accounts takes root")
	}
	system := installation.SystemAccounts{}
	_, err := system.EnsureUser(t.Context(), config.AnsibleUser)
	require.NoError(t, err)
	made, err := system.EnsureUser(t.Context(), config.AnsibleUser)
	require.NoError(t, err)
	require.False(t, made)
	gid, _, err := system.EnsureGroup(t.Context(), config.Group)
	require.NoError(t, err)
	again, made, err := system.EnsureGroup(t.Context(), config.Group)
	require.NoError(t, err)
	require.False(t, made)
	require.Equal(t, gid, again)

	found, err := user.Lookup(config.AnsibleUser)
	require.NoError(t, err)
	require.Equal(t, "/nonexistent", found.HomeDir)
	groups, err := found.GroupIds()
	require.NoError(t, err)
	require.NotContains(t, groups, fmt.Sprint(gid), "it is not in group burrow")
	shadow, err := os.ReadFile("/etc/shadow")
	require.NoError(t, err)
	require.Regexp(t, `(?m)^burrow-ansible:!`, string(shadow))
}
