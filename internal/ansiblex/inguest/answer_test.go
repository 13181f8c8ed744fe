package inguest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"burrow.dev/burrow/internal/ansiblex"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/manifest"
)

func TestAnAnswerSaysHowARunStands(t *testing.T) {
	a, err := ParseAnswer([]byte("boot-1\n{\"stage\":\"play\",\"exit\":2,\"ended\":true,\"try\":3,\"boot\":\"boot-1\"}\nbG9n\nZXZlbnRz\n"))
	require.NoError(t, err)
	require.Equal(t, Answer{State: State{Stage: StagePlay, Exit: 2, Ended: true, Try: 3, Boot: "boot-1"}, Log: []byte("log"), Events: []byte("events")}, a)

	a, err = ParseAnswer([]byte("boot-2\n{\"stage\":\"install\",\"exit\":0,\"ended\":false,\"try\":1,\"boot\":\"boot-1\"}\n\n\n"))
	require.NoError(t, err)
	require.True(t, a.Interrupted)

	a, err = ParseAnswer([]byte("boot-1\n\n\n\n"))
	require.NoError(t, err)
	require.Equal(t, State{Stage: StageWaiting, Try: 1, Boot: "boot-1"}, a.State, "it is just being begun")
}

// Whatever a guest says is refused, or within bounds.
func FuzzParseAnswer(f *testing.F) {
	f.Add([]byte("b\n{\"stage\":\"play\",\"exit\":0,\"ended\":true,\"try\":1,\"boot\":\"b\"}\nbG9n\n\n"))
	f.Add([]byte("\n\n\n\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		a, err := ParseAnswer(text)
		if err != nil {
			return
		}
		require.Contains(t, []string{StageWaiting, StageInstall, StageFetch, StagePlay}, a.Stage)
		require.True(t, a.Try >= 1 && a.Try <= maxTry && a.Exit >= 0 && a.Exit <= 255)
		require.LessOrEqual(t, len(a.Log)+len(a.Events), MaxAnswer)
	})
}

func TestWhatNamesNoRunOrCannotRunInAGuestIsRefused(t *testing.T) {
	good := manifest.Ansible{Playbook: []string{"site.yaml"}, RemotePlaybook: true}
	for says, p := range map[string]Play{
		"names no run":          {Key: "../../etc", Spec: good},
		"it takes one playbook": {Key: "k", Spec: manifest.Ansible{RemotePlaybook: true}},
		"secrets are not given": {Key: "k", Spec: manifest.Ansible{Playbook: []string{"a"}, VaultPassword: "secret:v"}},
		"at most 512 go into":   {Key: "k", Spec: good, Archive: make([]byte, MaxArchive+1)},
	} {
		p.Host = ansiblex.Host{Name: "db"}
		_, err := p.Files()
		require.Equal(t, errs.Permanent, errs.ClassOf(err))
		require.ErrorContains(t, err, says)
	}
}
