package image

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestProgressIsToldAtEachStageAndNotWithEveryPiece(t *testing.T) {
	at := time.Unix(1_700_000_000, 0)
	var told []Progress
	report := paced(func() time.Time { return at }, func(p Progress) { told = append(told, p) })
	report("download", 0, 10)
	report("download", 1, 10)
	report("download", 2, 10)
	at = at.Add(reportEvery)
	report("download", 5, 10)
	report("verify", 0, 0)
	report("verify", 1, 0)
	require.Equal(t, []Progress{{Stage: "download", Total: 10}, {Stage: "download", Done: 5, Total: 10}, {Stage: "verify"}}, told)
}
