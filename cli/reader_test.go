package cli

import (
	"bufio"
	"io"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"burrow.dev/burrow/manifest"
)

func TestAWatchEndsWhenNobodyReadsItAnyMore(t *testing.T) {
	w := newWorld(t)
	w.put("db", manifest.PhaseRunning)
	w.start()
	r, out, err := os.Pipe()
	require.NoError(t, err)
	defer out.Close()
	code := make(chan int, 1)
	go func() { code <- w.burrow(t.Context(), nil, out, io.Discard, "get", "servers", "-w") }()
	lines := bufio.NewReader(r)
	line, err := lines.ReadString('\n') // head -1
	require.NoError(t, err)
	require.Contains(t, line, "NAME")
	require.NoError(t, r.Close())
	select {
	case got := <-code:
		require.Equal(t, ExitStopped, got)
	case <-time.After(soon):
		require.FailNow(t, "it still waits for the next change")
	}
}

func TestAReaderThatStaysEndsNothing(t *testing.T) {
	r, out, err := os.Pipe()
	require.NoError(t, err)
	defer r.Close()
	defer out.Close()
	ctx, stop := whileRead(t.Context(), out)
	_, err = out.WriteString("x")
	require.NoError(t, err)
	require.NoError(t, ctx.Err())
	stop()
	require.Error(t, ctx.Err())
}
