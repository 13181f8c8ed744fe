package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"burrow.dev/burrow/activities/sweep"
	"burrow.dev/burrow/manifest"
	"burrow.dev/burrow/workflows"
)

func TestASweepListsWhatItDidWhatItNotedAndWhereItDidNotLook(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	out := workflows.SweepOut{
		Settled: []workflows.Settled{{Ref: "server/db", Was: "PowerServer", Phase: manifest.PhaseUpdating, Since: now.Add(-time.Minute), What: "its record says Running, as its guest is"}},
		Findings: []sweep.Finding{
			{Object: "OVS port bw0c167557ce", Host: "kvm1", Ref: "server/web", Problem: "left behind by server/web, which is gone", Since: now.Add(-20 * time.Minute), Next: "removed"},
			{Object: "volume x", Host: "kvm1", Problem: "left behind", Since: now, Next: "the next sweep tries again", Error: "domain y uses it"},
		},
		Away: []workflows.Away{{Host: "kvm2", Why: "its worker does not answer"}}, More: 3,
	}
	var b strings.Builder
	require.NoError(t, writeSweep(&b, out, "nothing to mend", now))
	require.Equal(t, `OBJECT                  HOST   WHAT IS WRONG                                   SEEN   SWEEP
server/db               -      it says Updating, and its PowerServer is gone   60s    its record says Running, as its guest is
OVS port bw0c167557ce   kvm1   left behind by server/web, which is gone        20m    removed
volume x                kvm1   left behind                                     0s     domain y uses it; the next sweep tries again
host/kvm2               kvm2   not looked at: its worker does not answer       -      looked at when it answers
and 3 more, which the next sweep looks at
`, b.String())

	some := only(out, []Ref{{Kind: manifest.KindServer, Name: "web"}})
	require.Len(t, some.Findings, 1)
	require.Empty(t, some.Settled)

	b.Reset()
	require.NoError(t, writeSweep(&b, workflows.SweepOut{}, "nothing to mend", now))
	require.Equal(t, "nothing to mend\n", b.String())
}

func TestTheDoctorWarnsOnlyOfWhatNeedsAPerson(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	of := func(verdict sweep.Verdict) workflows.SweepOut {
		return workflows.SweepOut{At: now.Add(-5 * time.Minute), Findings: []sweep.Finding{{Verdict: verdict}}}
	}
	for verdict, level := range map[sweep.Verdict]verdictLevel{
		sweep.VerdictWait: checkOK, sweep.VerdictMended: checkOK, sweep.VerdictAsk: checkWarn, sweep.VerdictNote: checkWarn,
	} {
		require.Equal(t, level, sweepVerdict(of(verdict), now).Level, verdict)
	}
	require.Equal(t, checkOK, sweepVerdict(workflows.SweepOut{At: now.Add(-time.Minute)}, now).Level)
	require.Equal(t, checkWarn, sweepVerdict(workflows.SweepOut{At: now.Add(-2 * time.Hour)}, now).Level, "sweeps were missed")
}

func TestWhatASweepIsToldIsChecked(t *testing.T) {
	w := newWorld(t)
	w.start()
	for _, args := range [][]string{{"sweep", "server/db"}, {"sweep", "--grace", "1s"}, {"sweep", "--remove", "abc", "-y"}} {
		var out, errOut strings.Builder
		require.Equal(t, ExitOther, w.burrow(t.Context(), strings.NewReader(""), &out, &errOut, args...), args)
		require.Contains(t, errOut.String(), "burrow sweep", args)
	}
}
