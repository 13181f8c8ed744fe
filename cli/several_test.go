package cli

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	ucli "github.com/urfave/cli/v2"

	"burrow.dev/burrow/cli/follow"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/manifest"
)

func TestAResourceThatIsRefusedDoesNotHideTheOthers(t *testing.T) {
	a, b, c := Ref{manifest.KindServer, "a"}, Ref{manifest.KindServer, "b"}, Ref{manifest.KindServer, "c"}
	taken := &ExitError{Code: ExitBusy, Err: errors.New("server/b is busy")}
	do := func(ref Ref) ([]follow.Target, error) {
		if ref == b {
			return nil, taken
		}
		return []follow.Target{{ID: ref.String()}}, nil
	}
	targets, refused := doEach(t.Context(), []Ref{a, b, c}, do)
	require.Equal(t, []follow.Target{{ID: "server/a"}, {ID: "server/c"}}, targets)
	require.Equal(t, []error{taken}, refused)

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	targets, _ = doEach(ctx, []Ref{a, b, c}, do)
	require.Len(t, targets, 1, "Ctrl-C starts no more")
}

func TestSeveralErrorsAreEachPrintedAndTheWorstDecides(t *testing.T) {
	busy := &ExitError{Code: ExitBusy, Err: errors.New("server/b is busy")}
	absent := errs.NewPermanent("server/c", "watch", errs.ErrNotFound, "list them")
	failed := &ExitError{Code: ExitFailed, Err: errors.New("server/a: no room")}
	stopped := &ExitError{Code: ExitStopped}
	for name, c := range map[string]struct {
		all  []error
		code int
		text string
	}{
		"none":          {[]error{nil, nil}, ExitOK, ""},
		"one":           {[]error{nil, busy}, ExitBusy, "error: server/b is busy\n"},
		"busy, failed":  {[]error{busy, failed}, ExitFailed, "error: server/b is busy\nerror: server/a: no room\n"},
		"absent, busy":  {[]error{absent, busy}, ExitBusy, "error: server/c: watch: not found\n  next: list them\nerror: server/b is busy\n"},
		"busy, stopped": {[]error{busy, stopped}, ExitBusy, "error: server/b is busy\n"},
	} {
		var out bytes.Buffer
		require.Equal(t, c.code, report(&out, together(c.all...)), name)
		require.Equal(t, c.text, out.String(), name)
	}
}

func TestACancelThatSucceededDoesNotHideOneThatWasRefused(t *testing.T) {
	var out bytes.Buffer
	c := ucli.NewContext(&ucli.App{Writer: &out}, nil, nil)
	given := &givenUpError{&ExitError{Code: ExitFailed, Err: errors.New("server/a: cancelled")}}
	absent := errs.NewPermanent("server/b", "cancel", errs.Reason("nothing is running on it"), "")
	require.Equal(t, absent, cancelled(c, together(absent, given)))
	require.Equal(t, "server/a: cancelled\n", out.String())
	require.NoError(t, cancelled(c, given))
}
