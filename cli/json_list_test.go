package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"burrow.dev/burrow/manifest"
)

func TestAListWrittenItemByItemIsTheDocumentWrittenAtOnce(t *testing.T) {
	var records []manifest.Record
	for n := range 4 {
		var streamed, whole bytes.Buffer
		l := jsonList{w: &streamed}
		for _, rec := range records {
			require.NoError(t, l.add(rec))
		}
		require.NoError(t, l.end())
		require.NoError(t, printJSON(&whole, listOf(records)))
		require.Equal(t, whole.String(), streamed.String(), "%d items", n)
		var rec manifest.Record
		rec.APIVersion, rec.Kind, rec.Spec = manifest.APIVersion, manifest.KindServer, json.RawMessage(`{"a":{"b":[1,"<&>"]}}`)
		rec.Metadata.Name = fmt.Sprint("s", n)
		rec.Status.Message = "two\nlines"
		records = append(records, rec)
	}
}
