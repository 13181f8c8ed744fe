package etcdstate

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/manifest"
)

func TestWhatCanBeReadCanBeListed(t *testing.T) {
	s := newTestStore(t)
	summaries := NewSummaries(s)
	key := s.Key("servers", "odd")
	for _, value := range []string{
		`{"kind":"Server","metadata":{"name":"odd"}}`,
		`{"kind":"Server","metadata":{"name":"odd"},"spec":{"cpu":"many"}}`,
		`{"kind":"Server","metadata":{"name":"odd"},"spec":[]}`,
	} {
		_, err := s.client.Put(t.Context(), key, value)
		require.NoError(t, err)
		read, err := s.Get(t.Context(), manifest.KindServer, "odd")
		require.NoError(t, err)
		listed := 0
		require.NoError(t, summaries.Each(t.Context(), manifest.KindServer, func(encoded []byte) error {
			var rec manifest.Record
			require.NoError(t, json.Unmarshal(encoded, &rec), value)
			require.Equal(t, read.Metadata, rec.Metadata, value)
			listed++
			return nil
		}))
		require.Equal(t, 1, listed)
	}
	_, err := s.client.Put(t.Context(), key, `{"kind":7}`)
	require.NoError(t, err)
	err = summaries.Each(t.Context(), manifest.KindServer, func([]byte) error { return nil })
	require.Equal(t, errs.Operator, errs.ClassOf(err))
	require.ErrorContains(t, err, key)
}
