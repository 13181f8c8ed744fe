package worker

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"

	"burrow.dev/burrow/internal/errs"
)

func TestAnErrorReachesTemporalWithItsClassAndWordsItCanTake(t *testing.T) {
	tests := map[string]struct {
		err    error
		class  errs.Class
		prefix string
	}{
		"operator":      {errs.NewOperator("server/db", "run playbook", errors.New("failed"), ""), errs.Operator, "server/db: run playbook: failed"},
		"unclassed":     {errors.New("no answer"), errs.Transient, "no answer"},
		"not UTF-8":     {errors.New("file \xff.iso"), errs.Transient, "file �.iso"},
		"cut in a rune": {errors.New("x" + strings.Repeat("→", messageMost)), errs.Transient, "x→"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var app *temporal.ApplicationError
			require.ErrorAs(t, toTemporal(tt.err), &app)
			require.Equal(t, string(tt.class), app.Type())
			require.Equal(t, tt.class != errs.Transient, app.NonRetryable())
			require.True(t, utf8.ValidString(app.Message()))
			require.True(t, strings.HasPrefix(app.Message(), tt.prefix), app.Message())
			require.LessOrEqual(t, len(app.Message()), messageMost+len("…"))
		})
	}
}
