package cli

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestARetryTakesThePlaybookForItsFolder(t *testing.T) {
	for path, want := range map[string]string{
		"play/site.yaml": "play", "site.yaml": ".", "/site.yaml": "/", "/a/play/site.yaml": "/a/play", "./play/../site.yaml": ".",
		"x/deploy/db.yaml": "x", "play": "play", "mysite.yaml": "mysite.yaml", "db.yaml": "db.yaml",
	} {
		require.Equal(t, want, above(path, []string{"site.yaml", "deploy/db.yaml"}), path)
	}
}
