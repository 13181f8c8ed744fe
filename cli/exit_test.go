package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	ucli "github.com/urfave/cli/v2"
	enumspb "go.temporal.io/api/enums/v1"

	"burrow.dev/burrow/cli/follow"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/manifest"
	"burrow.dev/burrow/workflows"
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

func TestTheWorstEndOfSeveralOperationsDecidesTheExitCode(t *testing.T) {
	failed := func(class errs.Class) follow.Outcome {
		return follow.Outcome{Kind: workflows.NameProvisionServer, Status: enumspb.WORKFLOW_EXECUTION_STATUS_FAILED, Class: string(class)}
	}
	cancelled := follow.Outcome{Kind: workflows.NameProvisionServer, Status: enumspb.WORKFLOW_EXECUTION_STATUS_CANCELED}
	held := follow.Outcome{Kind: workflows.NameProvisionServer, Held: true}
	busy := follow.Outcome{
		Kind: workflows.NameApplyDocuments, Status: enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED,
		Result: []byte(`{"results":[{"ref":"server/db","error":"busy","busy":true}]}`),
	}
	for name, c := range map[string]struct {
		ends    []follow.Outcome
		code    int
		givenUp bool
	}{
		"busy, held":           {[]follow.Outcome{busy, held}, ExitHeld, false},
		"held, failed":         {[]follow.Outcome{held, failed(errs.Operator)}, ExitFailed, false},
		"aborted":              {[]follow.Outcome{failed(errs.Operator)}, ExitFailed, true},
		"cancelled":            {[]follow.Outcome{cancelled}, ExitFailed, true},
		"its undo left things": {[]follow.Outcome{cancelled, failed(errs.Permanent)}, ExitFailed, false},
	} {
		var exit *ExitError
		err := verdict(c.ends)
		require.ErrorAs(t, err, &exit, name)
		require.Equal(t, c.code, exit.Code, name)
		var given *givenUpError
		require.Equal(t, c.givenUp, errors.As(err, &given), name)
	}
	require.NoError(t, verdict([]follow.Outcome{{Status: enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED}}))
}

func TestStatusCountsRestartsInWords(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, printStatus(&out, []partStatus{{Name: "worker", Restarts: 1}, {Name: "devstack", Restarts: 3}}))
	require.Contains(t, out.String(), "(started again once)")
	require.Contains(t, out.String(), "(started again 3 times)")
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

// leaves calls fn with every command that does something, and its words.
func leaves(commands []*ucli.Command, words []string, fn func(*ucli.Command, []string)) {
	for _, c := range commands {
		path := append(slices.Clone(words), c.Name)
		if len(c.Subcommands) > 0 {
			leaves(c.Subcommands, path, fn)
		} else {
			fn(c, path)
		}
	}
}

func TestACommandWithoutArgumentsRefusesThem(t *testing.T) {
	tried := 0
	leaves(newApp().Commands, nil, func(c *ucli.Command, words []string) {
		if c.ArgsUsage != "" || c.Name == "help" {
			return
		}
		tried++
		var out, errOut bytes.Buffer
		code := run(t.Context(), append(append([]string{"burrow", "--config", filepath.Join(t.TempDir(), "none")}, words...), "extra"), nil, &out, &errOut)
		require.Equal(t, ExitOther, code, words)
		command := "burrow " + strings.Join(words, " ")
		require.True(t, strings.HasPrefix(errOut.String(), "error: "+command+": it takes no arguments"), errOut.String())
		require.Contains(t, errOut.String(), "next: "+command+" --help")
		require.Empty(t, out.String(), words)
	})
	require.Greater(t, tried, 10)
}
