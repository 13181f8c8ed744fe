package etcdstate

import (
	"testing"

	"github.com/stretchr/testify/require"

	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/manifest"
)

// Taken for what it says, the server of that key would have no record: a delete of it
// would leave its guest, and a sweep would ask to remove it.
func TestARecordThatIsNotOfItsKeyIsNoRecord(t *testing.T) {
	s := newTestStore(t)
	key := s.Key("servers", "a")
	for _, value := range []string{
		`{}`, `null`,
		`{"kind":"Server","metadata":{"name":"other"}}`,
		`{"kind":"Volume","metadata":{"name":"a"}}`,
	} {
		_, err := s.client.Put(t.Context(), key, value)
		require.NoError(t, err)
		_, err = s.Get(t.Context(), manifest.KindServer, "a")
		require.Equal(t, errs.Operator, errs.ClassOf(err), value)
		require.ErrorContains(t, err, key)
		require.ErrorContains(t, err, "restore it from a backup")
	}
}
