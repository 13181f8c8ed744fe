package seed

import (
	"burrow.dev/burrow/activities"
	"burrow.dev/burrow/manifest"
)

// WriteIn is what the NoCloud seed needs. Host keys and the management key are made
// (once a uid) by the activity and kept in the secret store, never in history.
type WriteIn struct {
	Server    activities.Server   `json:"server"`
	Hostname  string              `json:"hostname"`
	Auth      manifest.Auth       `json:"auth"`
	Keys      []string            `json:"keys"`  // authorized_keys lines of the users
	Login     string              `json:"login"` // the image's default user
	Ports     []manifest.Port     `json:"ports"`
	CloudInit *manifest.CloudInit `json:"cloudInit,omitempty"`
	// Rebuild counts rebuilds: instance-id is "<uid>-<rebuild>" (pitfall 38).
	Rebuild int `json:"rebuild"`
}

// WriteOut is the ISO: <dataDir>/seeds/<uid>-<hash[:12]>.iso, and the public host keys
// ("ssh-ed25519 AAAA…") and login that readiness, ssh and Ansible pin.
type WriteOut struct {
	Path     string   `json:"path"`
	HostKeys []string `json:"hostKeys"`
	Login    string   `json:"login"`
}

// PruneIn deletes all seeds of a uid but one.
type PruneIn struct {
	Server activities.Server `json:"server"`
	Keep   string            `json:"keep"` // path
}

// RemoveIn deletes all seeds of a uid, and (Secrets true) its keys from the secret store.
type RemoveIn struct {
	Server  activities.Server `json:"server"`
	Secrets bool              `json:"secrets"`
}
