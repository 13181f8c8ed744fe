package temporalnode

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// provenance is schema.json beside the database.
type provenance struct {
	// ServerVersion of the Temporal server that made or last upgraded the schema;
	// empty when unknown.
	ServerVersion string `json:"temporalServer"`
}

// provenanceFile stands in the database's folder.
func provenanceFile(database string) string {
	return filepath.Join(filepath.Dir(database), "schema.json")
}

// readProvenance gives the zero value when there is no file.
func readProvenance(database string) (provenance, error) {
	var recorded provenance
	text, err := os.ReadFile(provenanceFile(database))
	if errors.Is(err, fs.ErrNotExist) {
		return recorded, nil
	}
	if err != nil {
		return recorded, fmt.Errorf("temporal database %s: read its version: %w", database, err)
	}
	if err := json.Unmarshal(text, &recorded); err != nil {
		return recorded, fmt.Errorf("temporal database %s: read its version from %s: %w", database, provenanceFile(database), err)
	}
	return recorded, nil
}

// writeProvenance records this server's version.
func writeProvenance(database string) error {
	text, err := json.Marshal(provenance{ServerVersion: ServerVersion})
	if err != nil {
		return fmt.Errorf("temporal database %s: encode its version: %w", database, err)
	}
	aside := provenanceFile(database) + ".new"
	if err := os.WriteFile(aside, append(text, '\n'), 0o600); err != nil {
		return fmt.Errorf("temporal database %s: record its version: %w", database, err)
	}
	if err := os.Rename(aside, provenanceFile(database)); err != nil {
		return fmt.Errorf("temporal database %s: record its version: %w", database, err)
	}
	return nil
}
