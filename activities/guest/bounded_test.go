package guest

import (
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAnEndlessAnswerIsBoundedHoweverItIsCopied(t *testing.T) {
	called := 0
	out := &bounded{left: 5, full: func() { called++ }}
	n, err := io.Copy(out, strings.NewReader(strings.Repeat("yes\n", 10000)))
	require.NoError(t, err)
	require.EqualValues(t, 40000, n)
	require.Equal(t, "yes\ny", out.String())
	require.True(t, out.over)
	require.Equal(t, 1, called)
}
