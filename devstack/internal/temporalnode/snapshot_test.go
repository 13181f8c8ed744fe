package temporalnode

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
)

// TestASnapshotOfADatabaseThatIsBeingWrittenIsOneMoment writes pairs of rows in one
// transaction each and finds only whole pairs in snapshots.
func TestASnapshotOfADatabaseThatIsBeingWrittenIsOneMoment(t *testing.T) {
	path := database(t, "CREATE TABLE pairs (n INTEGER, side TEXT)")
	ctx, cancel := context.WithCancel(t.Context())
	var group errgroup.Group
	started := make(chan struct{})
	group.Go(func() error {
		db, err := open(path)
		if err != nil {
			return err
		}
		defer db.Close()
		for n := 0; ctx.Err() == nil; n++ {
			tx, err := db.Begin()
			if err != nil {
				return err
			}
			for _, side := range []string{"left", "right"} {
				if _, err := tx.Exec("INSERT INTO pairs VALUES (?, ?)", n, side); err != nil {
					return err
				}
			}
			if err := tx.Commit(); err != nil {
				return err
			}
			if n == 10 {
				close(started)
			}
		}
		return nil
	})
	<-started
	before := 0
	for range 5 {
		copied := filepath.Join(t.TempDir(), "copy.db")
		require.NoError(t, Snapshot(t.Context(), filepath.Dir(path), copied))
		info, err := os.Stat(copied)
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
		require.Equal(t, ServerVersion, version(t, copied))
		db, err := open(copied)
		require.NoError(t, err)
		var pairs, torn int
		require.NoError(t, db.QueryRow("SELECT count(*) FROM pairs WHERE side = 'left'").Scan(&pairs))
		require.NoError(t, db.QueryRow("SELECT count(*) FROM (SELECT n FROM pairs GROUP BY n HAVING count(*) <> 2)").Scan(&torn))
		require.NoError(t, db.Close())
		require.Greater(t, pairs, before)
		require.Zero(t, torn)
		before = pairs
	}
	cancel()
	require.NoError(t, group.Wait())
}

func TestASnapshotReplacesNothingAndLeavesNothingWhenItFails(t *testing.T) {
	path := database(t)
	taken := filepath.Join(t.TempDir(), "taken.db")
	require.NoError(t, os.WriteFile(taken, []byte("mine"), 0o600))
	require.Error(t, Snapshot(t.Context(), filepath.Dir(path), taken))
	text, err := os.ReadFile(taken)
	require.NoError(t, err)
	require.Equal(t, "mine", string(text))

	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	dir := t.TempDir()
	require.Error(t, Snapshot(cancelled, filepath.Dir(path), filepath.Join(dir, "copy.db")))
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestADamagedOrForeignDatabaseIsFoundOutBeforeItIsUsed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "copy.db")
	require.NoError(t, Snapshot(t.Context(), filepath.Dir(database(t)), path))
	require.NoError(t, CheckDatabase(t.Context(), path))

	text, err := os.ReadFile(path)
	require.NoError(t, err)
	for name, content := range map[string][]byte{"cut": text[:len(text)/2], "other": []byte("this is no database at all, but long enough to be one")} {
		bad := filepath.Join(t.TempDir(), name)
		require.NoError(t, os.WriteFile(bad, content, 0o600))
		require.Error(t, CheckDatabase(t.Context(), bad), name)
	}
	db, err := open(path)
	require.NoError(t, err)
	_, err = db.Exec("ALTER TABLE shards ADD COLUMN colour TEXT")
	require.NoError(t, err)
	_, err = db.Exec("PRAGMA journal_mode=delete")
	require.NoError(t, err)
	require.NoError(t, db.Close())
	require.ErrorIs(t, CheckDatabase(t.Context(), path), ErrSchema)
}
