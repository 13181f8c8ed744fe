package temporalnode

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
)

// Snapshot writes the database of a data folder, as it is at one moment, to a new file
// (mode 0600) while a server goes on writing it, and its schema.json beside that. What the
// server acknowledged before Snapshot was called is in it.
func Snapshot(ctx context.Context, dir, target string) error {
	database := filepath.Join(dir, "temporal.db")
	if _, err := os.Stat(database); err != nil {
		return fmt.Errorf("temporal database: %w", err)
	}
	recorded, err := os.ReadFile(provenanceFile(database))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("temporal database %s: read its version: %w", database, err)
	}
	// VACUUM INTO takes an empty file, which so has its mode before anything is in it.
	file, err := os.OpenFile(target, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("temporal database: snapshot: %w", err)
	}
	err = file.Close()
	if err == nil {
		err = vacuum(ctx, database, target)
	}
	if err == nil {
		err = os.WriteFile(provenanceFile(target), recorded, 0o600)
	}
	if err != nil {
		return errors.Join(err, os.Remove(target))
	}
	return nil
}

// vacuum copies in one read transaction: in WAL mode the writer does not wait for it.
func vacuum(ctx context.Context, database, target string) error {
	options := url.Values{"mode": {"rw"}, "_pragma": {"busy_timeout=" + busyTimeoutMillis}}
	db, err := sql.Open("sqlite", "file:"+database+"?"+options.Encode())
	if err != nil {
		return fmt.Errorf("temporal database %s: open: %w", database, err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	if _, err := db.ExecContext(ctx, "VACUUM INTO ?", target); err != nil {
		return fmt.Errorf("temporal database %s: snapshot: %w", database, err)
	}
	return CheckDatabase(ctx, target)
}

// CheckDatabase reads a whole database that nobody writes to, and says whether SQLite finds
// it sound and this server can use it. It changes nothing.
func CheckDatabase(ctx context.Context, path string) error {
	db, err := sql.Open("sqlite", "file:"+path+"?mode=ro&immutable=1")
	if err != nil {
		return fmt.Errorf("temporal database %s: open: %w", path, err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	var found string
	if err := db.QueryRowContext(ctx, "PRAGMA quick_check(1)").Scan(&found); err != nil {
		return fmt.Errorf("temporal database %s: check: %w", path, err)
	}
	if found != "ok" {
		return fmt.Errorf("temporal database %s: damaged: %s", path, found)
	}
	have, err := objects(db)
	if err != nil {
		return fmt.Errorf("temporal database %s: read schema: %w", path, err)
	}
	want, err := wantedObjects()
	if err != nil {
		return err
	}
	if err := fits(have, want); err != nil {
		return fmt.Errorf("temporal database %s: %w", path, err)
	}
	return nil
}
