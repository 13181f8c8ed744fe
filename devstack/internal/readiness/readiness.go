// Package readiness tells whoever started the process that it serves, and where:
// one line on standard output for people, one JSON file for programs.
//
//	parts serving ──▶ Report ──▶ stdout: "etcd ready http://127.0.0.1:2379"
//	                        └──▶ --ready-file (written aside, then renamed: never half there)
package readiness

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// Report is what the ready file holds. A part that does not run is left out.
type Report struct {
	// PID of the process that serves.
	PID int `json:"pid"`
	// TemporalAddress is host:port of the frontend (gRPC).
	TemporalAddress string `json:"temporalAddress,omitempty"`
	// Namespace that is registered there.
	Namespace string `json:"namespace,omitempty"`
	// WebUI is a URL for people.
	WebUI string `json:"webUI,omitempty"`
	// EtcdEndpoint is a client URL, http or https.
	EtcdEndpoint string `json:"etcdEndpoint,omitempty"`
	// TLS is true when client certificates are asked for.
	TLS bool `json:"tls"`
	// StartupMillis is the time from the start of the process's work to readiness.
	StartupMillis int64 `json:"startupMillis"`
}

// Write puts the report where a reader sees all of it or nothing. An empty path does nothing.
func (r Report) Write(path string) error {
	if path == "" {
		return nil
	}
	text, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("ready file %s: encode: %w", path, err)
	}
	aside, err := os.CreateTemp(filepath.Dir(path), ".ready-*")
	if err != nil {
		return fmt.Errorf("ready file %s: create: %w", path, err)
	}
	defer os.Remove(aside.Name())
	if _, err := aside.Write(append(text, '\n')); err != nil {
		aside.Close()
		return fmt.Errorf("ready file %s: write: %w", path, err)
	}
	if err := aside.Chmod(0o644); err != nil { // addresses are no secret, and "burrow status" is for everybody
		aside.Close()
		return fmt.Errorf("ready file %s: set mode: %w", path, err)
	}
	if err := aside.Close(); err != nil {
		return fmt.Errorf("ready file %s: close: %w", path, err)
	}
	if err := os.Rename(aside.Name(), path); err != nil {
		return fmt.Errorf("ready file %s: put in place: %w", path, err)
	}
	return nil
}

// Remove takes the file away, so that nobody reads the state of an earlier process.
// An empty path or a file that is not there is success.
func Remove(path string) error {
	if path == "" {
		return nil
	}
	if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
		return fmt.Errorf("ready file %s: remove: %w", path, err)
	}
	return nil
}
