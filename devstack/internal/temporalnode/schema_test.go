package temporalnode

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func database(t *testing.T, statements ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "temporal.db")
	require.NoError(t, ensureSchema(path))
	db, err := open(path)
	require.NoError(t, err)
	defer db.Close()
	for _, statement := range statements {
		_, err := db.Exec(statement)
		require.NoError(t, err, statement)
	}
	return path
}

// madeBy pretends that another server version made the database.
func madeBy(t *testing.T, path, version string) {
	t.Helper()
	require.NoError(t, os.WriteFile(provenanceFile(path), []byte(`{"temporalServer":"`+version+`"}`), 0o600))
}

func version(t *testing.T, path string) string {
	t.Helper()
	recorded, err := readProvenance(path)
	require.NoError(t, err)
	return recorded.ServerVersion
}

func TestANewDatabaseGetsTheSchemaAndItsVersion(t *testing.T) {
	path := database(t)
	require.Equal(t, ServerVersion, version(t, path))
	require.NoError(t, ensureSchema(path), "again changes nothing")
}

func TestADatabaseOfAnotherVersionWithTheSameTablesIsTakenOver(t *testing.T) {
	path := database(t)
	madeBy(t, path, "1.31.0")
	require.NoError(t, ensureSchema(path))
	require.Equal(t, ServerVersion, version(t, path))
}

func TestTablesAddedUpstreamAreAddedAndRowsStay(t *testing.T) {
	path := database(t, "DROP TABLE nexus_endpoints", "DROP INDEX by_keyword_01", "INSERT INTO shards VALUES (7, 1, x'00', 'Proto3')")
	madeBy(t, path, "1.20.0")
	require.NoError(t, ensureSchema(path))
	db, err := open(path)
	require.NoError(t, err)
	defer db.Close()
	have, err := objects(db)
	require.NoError(t, err)
	require.Contains(t, have, "table nexus_endpoints")
	require.Contains(t, have, "index by_keyword_01")
	var rows int
	require.NoError(t, db.QueryRow("SELECT count(*) FROM shards WHERE shard_id = 7").Scan(&rows))
	require.Equal(t, 1, rows)
	require.NoError(t, db.QueryRow("SELECT count(*) FROM namespace_metadata").Scan(&rows))
	require.Equal(t, 1, rows)
}

func TestATableThatChangedUpstreamIsRefusedAndNothingIsWritten(t *testing.T) {
	path := database(t, "ALTER TABLE shards ADD COLUMN colour TEXT")
	madeBy(t, path, "1.99.0")
	err := ensureSchema(path)
	require.ErrorIs(t, err, ErrSchema)
	require.ErrorContains(t, err, "table shards changed")
	require.ErrorContains(t, err, `made by server "1.99.0"`)
	require.Equal(t, "1.99.0", version(t, path))
}

func TestADatabaseWithoutRecordedVersionIsComparedNotTrusted(t *testing.T) {
	path := database(t)
	require.NoError(t, os.Remove(provenanceFile(path)))
	require.NoError(t, ensureSchema(path))
	require.Equal(t, ServerVersion, version(t, path))
}
