package temporalnode

import (
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"go.temporal.io/server/common/persistence/sql/sqlplugin"
	sqliteschema "go.temporal.io/server/schema/sqlite"
)

// existing says what to do with a statement whose object or row is there already.
type existing bool

const (
	refuseExisting existing = false
	skipExisting   existing = true
)

// open opens a database file with the pragmas of Config.store.
func open(path string) (*sql.DB, error) {
	pragmas := url.Values{"mode": {"rwc"}, "_pragma": {"busy_timeout=" + busyTimeoutMillis, "journal_mode=wal", "synchronous=full"}}
	db, err := sql.Open("sqlite", "file:"+path+"?"+pragmas.Encode())
	if err != nil {
		return nil, fmt.Errorf("temporal database %s: open: %w", path, err)
	}
	db.SetMaxOpenConns(1)
	return db, nil
}

// objects gives the normalised definition of every table, index and trigger by
// "type name". Tables that SQLite keeps for itself are left out.
func objects(db *sql.DB) (map[string]string, error) {
	rows, err := db.Query(`SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%'`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	found := map[string]string{}
	for rows.Next() {
		var kind, name, definition string
		if err := rows.Scan(&kind, &name, &definition); err != nil {
			return nil, err
		}
		found[kind+" "+name] = strings.Join(strings.Fields(definition), " ")
	}
	return found, rows.Err()
}

// create runs upstream's schema statements in one transaction.
func create(db *sql.DB, mode existing) error {
	tx, err := db.Begin()
	if err != nil {
		return err
	}
	if err := sqliteschema.SetupSchemaOnDB(transaction{tx: tx, mode: mode}); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}

// transaction is the one method of sqlplugin.AdminDB that setting up a schema uses.
type transaction struct {
	sqlplugin.AdminDB
	tx   *sql.Tx
	mode existing
}

// Exec runs one statement inside the transaction.
func (t transaction) Exec(statement string, args ...any) error {
	_, err := t.tx.Exec(statement, args...)
	if err != nil && t.mode == skipExisting && isExisting(err) {
		return nil
	}
	return err
}

// isExisting recognises "table x already exists" and the repeated insert of a first row.
func isExisting(err error) bool {
	return strings.Contains(err.Error(), "already exists") || strings.Contains(err.Error(), "UNIQUE constraint failed")
}
