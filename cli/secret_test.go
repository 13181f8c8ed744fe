package cli

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"burrow.dev/burrow/internal/keyring"
	"burrow.dev/burrow/manifest"
)

// heldSecrets keeps what it is given.
type heldSecrets struct {
	mu   sync.Mutex
	held map[string]string
}

func (h *heldSecrets) Set(_ context.Context, name string, value []byte, _ string) (bool, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	_, there := h.held[name]
	h.held[name] = string(value)
	return !there, nil
}

func (h *heldSecrets) List(context.Context) ([]manifest.Secret, error) { return nil, nil }

func (h *heldSecrets) Remove(context.Context, string) error { return nil }

func (h *heldSecrets) Rotate(_ context.Context, _ keyring.Rotation, say func(keyring.Step)) error {
	for _, step := range []keyring.Step{
		{Phase: keyring.Resumes, KeyID: "aa"},
		{Phase: keyring.Chosen, KeyID: "bb", Place: "/m.bb"},
		{Phase: keyring.Waits, Hosts: []string{"kvm2", "kvm3"}},
		{Phase: keyring.Encrypts, Done: 1},
	} {
		say(step)
	}
	return nil
}

// terminal is a pseudo-terminal: what a person types into, and what they see.
type terminal struct {
	master, slave *os.File
	seen          screenText
}

func newTerminal(t *testing.T) *terminal {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	require.NoError(t, unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0))
	number, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	require.NoError(t, err)
	slave, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	term := &terminal{master: master, slave: slave}
	var reading sync.WaitGroup
	reading.Go(func() {
		buf := make([]byte, 1024)
		for {
			n, err := master.Read(buf)
			if err != nil {
				return
			}
			_, _ = term.seen.Write(buf[:n])
		}
	})
	t.Cleanup(func() {
		// A prompt that was interrupted still reads, and would keep the slave open.
		_, _ = master.WriteString("\n")
		_ = slave.Close()
		_ = master.Close()
		reading.Wait()
	})
	return term
}

func (term *terminal) echoes(t *testing.T) bool {
	t.Helper()
	state, err := unix.IoctlGetTermios(int(term.slave.Fd()), unix.TCGETS)
	require.NoError(t, err)
	return state.Lflag&unix.ECHO != 0
}

func TestASecretThatIsTypedIsNotShown(t *testing.T) {
	w := newWorld(t)
	secrets := &heldSecrets{held: map[string]string{}}
	w.deps.Secrets = secrets
	w.start()
	term := newTerminal(t)
	code := make(chan int, 1)
	go func() { code <- w.burrow(t.Context(), term.slave, term.slave, term.slave, "secret", "set", "pw") }()
	for _, prompt := range []string{"Value of pw: ", "Once more: "} {
		term.seen.eventually(t, prompt)
		require.Eventually(t, func() bool { return !term.echoes(t) }, soon, time.Millisecond)
		_, err := term.master.WriteString("hunter2\n")
		require.NoError(t, err)
	}
	require.Equal(t, ExitOK, <-code)
	term.seen.eventually(t, "secret pw created")
	require.NotContains(t, term.seen.String(), "hunter2")
	require.Equal(t, "hunter2", secrets.held["pw"])
	require.True(t, term.echoes(t))
}

func TestASecretFromStandardInputLosesOneNewlineAndNothingElse(t *testing.T) {
	w := newWorld(t)
	secrets := &heldSecrets{held: map[string]string{}}
	w.deps.Secrets = secrets
	w.start()
	for input, want := range map[string]string{"a\n": "a", "a\r\n": "a", "a": "a", "a\n\n": "a\n", "a\r": "a\r", " a ": " a "} {
		var out screenText
		require.Equal(t, ExitOK, w.burrow(t.Context(), strings.NewReader(input), &out, &out, "secret", "set", "pw"), out.String())
		require.Equal(t, want, secrets.held["pw"], "%q", input)
	}
}

func TestAnInterruptedPromptLeavesTheTerminalAsItWas(t *testing.T) {
	w := newWorld(t)
	w.deps.Secrets = &heldSecrets{held: map[string]string{}}
	w.start()
	term := newTerminal(t)
	ctx, cancel := context.WithCancel(t.Context())
	code := make(chan int, 1)
	go func() { code <- w.burrow(ctx, term.slave, term.slave, term.slave, "secret", "set", "pw") }()
	require.Eventually(t, func() bool { return !term.echoes(t) }, soon, time.Millisecond)
	cancel()
	require.Equal(t, ExitStopped, <-code)
	require.True(t, term.echoes(t))
}

func TestARotationIsToldStepByStep(t *testing.T) {
	w := newWorld(t)
	w.deps.Secrets = &heldSecrets{}
	w.start()
	var out screenText
	require.Equal(t, ExitOK, w.burrow(t.Context(), nil, &out, &out, "secret", "rotate-key"))
	require.Equal(t, strings.Join([]string{
		"an earlier rotation was interrupted: finishing the one to master key aa",
		"the new master key is bb: /m.bb",
		"waiting for it to be there too: kvm2, kvm3", "",
	}, "\n"), out.String())
}
