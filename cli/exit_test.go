package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/manifest"
)

func TestErrorsArePrintedOnceAndDecideTheExitCode(t *testing.T) {
	problems := manifest.Problems{{File: "a.yaml", Line: 3, Column: 1, Object: "server/db", Path: "spec.cpu", Message: "must be at least 1"}}
	for name, c := range map[string]struct {
		err  error
		code int
		text string
	}{
		"none":    {nil, ExitOK, ""},
		"plain":   {errors.New("it broke"), ExitOther, "error: it broke\n"},
		"ours":    {errs.NewPermanent("server/db", "read", errs.ErrNotFound, "list them"), ExitOther, "error: server/db: read: not found\n  next: list them\n"},
		"wrapped": {fmt.Errorf("apply: %w", errs.NewPermanent("server/db", "read", errs.ErrNotFound, "list them")), ExitOther, "error: apply: server/db: read: not found\n  next: list them\n"},
		"busy":    {errs.New(errs.Permanent, "server/db", "start", errs.ErrBusy, ""), ExitBusy, "error: server/db: start: busy\n"},
		"coded":   {&ExitError{Code: ExitHeld, Err: errors.New("server/db waits")}, ExitHeld, "error: server/db waits\n"},
		"silent":  {&ExitError{Code: ExitStopped}, ExitStopped, ""},
		"ctrl-c":  {fmt.Errorf("follow: %w", context.Canceled), ExitStopped, ""},
		"hostile": {errors.New("guest says \x1b]0;owned\x07hello"), ExitOther, "error: guest says hello\n"},
	} {
		var out bytes.Buffer
		require.Equal(t, c.code, report(&out, c.err), name)
		require.Equal(t, c.text, out.String(), name)
	}
	var out bytes.Buffer
	require.Equal(t, ExitInvalid, report(&out, problems.Err()))
	require.Contains(t, out.String(), "a.yaml:3:1: server/db: spec.cpu: must be at least 1")
	require.Contains(t, out.String(), "error: 1 problem; nothing was touched")
}

func TestResourcesAreNamedInEveryUsualWay(t *testing.T) {
	db, web := Ref{manifest.KindServer, "db"}, Ref{manifest.KindServer, "web"}
	for _, c := range []struct {
		words []string
		want  []Ref
	}{
		{[]string{"server", "db"}, []Ref{db}},
		{[]string{"server/db"}, []Ref{db}},
		{[]string{"srv/db"}, []Ref{db}},
		{[]string{"servers", "db", "web"}, []Ref{db, web}},
		{[]string{"server/db", "server/web", "server/db"}, []Ref{db, web}},
		{[]string{"network/n", "volume/v"}, []Ref{{manifest.KindNetwork, "n"}, {manifest.KindVolume, "v"}}},
	} {
		refs, err := parseRefs(c.words)
		require.NoError(t, err, c.words)
		require.Equal(t, c.want, refs)
	}
	for _, words := range [][]string{{"db"}, {"server"}, {"nonsense/db"}, {"server/"}, {"server/db", "web"}, {"server", "a/b"}, {"server", "-"}} {
		_, err := parseRefs(words)
		require.Error(t, err, words)
	}
}
