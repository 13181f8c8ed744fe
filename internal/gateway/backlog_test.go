package gateway

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestABacklogHoldsOneEventARecordAndTheLatest(t *testing.T) {
	b := newBacklog()
	for n := range 100 {
		for i := range 10 {
			rec := server(fmt.Sprintf("s%d", i))
			rec.Metadata.Generation = int64(n)
			require.NoError(t, b.add(Event{Put, rec}))
		}
	}
	require.NoError(t, b.add(Event{Type: Delete, Record: server("s3")}))
	require.NoError(t, b.add(Event{Type: Delete, Record: server("s4")}))
	require.NoError(t, b.add(Event{Type: Put, Record: server("s4")}))
	require.Len(t, b.order, 10)
	require.Len(t, b.latest, 10)
	b.close()
	var got []string
	for {
		encoded, ok := b.next(t.Context())
		if !ok {
			break
		}
		e, err := decodeEvent(encoded)
		require.NoError(t, err)
		got = append(got, fmt.Sprintf("%s %s %d", e.Type, e.Record.Metadata.Name, e.Record.Metadata.Generation))
	}
	require.Equal(t, []string{
		"put s0 99", "put s1 99", "put s2 99", "delete s3 0", "put s4 0", "put s5 99", "put s6 99", "put s7 99", "put s8 99", "put s9 99",
	}, got, "in the order of their first news")
}
