package installation_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestALostMasterKeyIsNotReplacedByAnother(t *testing.T) {
	m := newMachine(t)
	m.up(0)
	m.must(0, "down")
	key, away := filepath.Join(m.dir, "master.key"), filepath.Join(t.TempDir(), "copy")
	require.NoError(t, os.Rename(key, away))
	require.Contains(t, m.up(1), "put your copy of it back")
	require.NoFileExists(t, key)
	rotated := key + ".0123456789abcdef"
	require.NoError(t, os.WriteFile(rotated, nil, 0o600))
	require.Contains(t, m.up(1), rotated)
	require.NoError(t, os.Remove(rotated))
	require.NoError(t, os.Rename(away, key))
	m.up(0)
}
