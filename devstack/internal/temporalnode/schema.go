package temporalnode

import (
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.temporal.io/server/common/headers"
)

// ServerVersion is the embedded Temporal server's version.
const ServerVersion = headers.ServerVersion

// ErrSchema means that the database was made by a server version whose tables this
// one cannot use.
var ErrSchema = errors.New("database schema does not fit")

// ensureSchema sets up the schema of a new database, in one transaction, so a kill
// leaves either all tables or none. A database of another server version is
// upgraded when only whole tables or indexes were added upstream, else refused.
func ensureSchema(path string) error {
	recorded, err := readProvenance(path)
	if err != nil {
		return err
	}
	db, err := open(path)
	if err != nil {
		return err
	}
	defer db.Close()
	have, err := objects(db)
	if err != nil {
		return fmt.Errorf("temporal database %s: read schema: %w", path, err)
	}
	if len(have) == 0 {
		if err := create(db, refuseExisting); err != nil {
			return fmt.Errorf("temporal database %s: set up schema: %w", path, err)
		}
		return writeProvenance(path)
	}
	if recorded.ServerVersion == ServerVersion {
		return nil
	}
	if err := upgrade(db, have); err != nil {
		return fmt.Errorf("temporal database %s, made by server %q, opened by %s: %w", path, recorded.ServerVersion, ServerVersion, err)
	}
	return writeProvenance(path)
}

// upgrade adds what is missing and refuses what differs.
func upgrade(db *sql.DB, have map[string]string) error {
	want, err := wantedObjects()
	if err != nil {
		return err
	}
	if err := fits(have, want); err != nil {
		return err
	}
	missing := false
	for name := range want {
		_, ok := have[name]
		missing = missing || !ok
	}
	if !missing {
		return nil
	}
	return create(db, skipExisting)
}

// fits refuses a schema in which something is there and another than wanted.
func fits(have, want map[string]string) error {
	var differs []string
	for name, wanted := range want {
		if definition, ok := have[name]; ok && definition != wanted {
			differs = append(differs, name)
		}
	}
	if len(differs) == 0 {
		return nil
	}
	slices.Sort(differs)
	return fmt.Errorf("%w: %s changed; keep using the version that made it, or finish its operations there and start with a new data folder",
		ErrSchema, strings.Join(differs, ", "))
}

// wantedObjects is the schema that this server sets up, read back from a new database.
func wantedObjects() (map[string]string, error) {
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		return nil, fmt.Errorf("open reference schema: %w", err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	if err := create(db, refuseExisting); err != nil {
		return nil, fmt.Errorf("build reference schema: %w", err)
	}
	return objects(db)
}
