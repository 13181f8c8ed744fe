package plaintext_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"burrow.dev/burrow/internal/plaintext"
)

func TestEscapedJSONSaysTheSameAndHidesNothing(t *testing.T) {
	was := map[string]string{"k\u009b": "a\u009b31m\u202eb\u007f\u2028\U000e0041 größer 日本 👩\u200d💻\n\x1b\ufffd"}
	encoded, err := json.MarshalIndent(was, "", "\t")
	require.NoError(t, err)
	safe := plaintext.EscapeJSON(encoded)
	for _, r := range "\u009b\u202e\u007f\u2028\U000e0041" {
		require.NotContains(t, string(safe), string(r))
	}
	require.Contains(t, string(safe), "größer 日本 👩\u200d💻")
	require.Contains(t, string(safe), `\u009b31m\u202eb\u007f`)
	var now map[string]string
	require.NoError(t, json.Unmarshal(safe, &now))
	require.Equal(t, was, now)
}
