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
	// Play is a playbook that the guest runs at its first boot; nil: none.
	Play *Play `json:"play,omitempty"`
}

// FirstPlay names the run, in the guest, of the playbook in its seed.
const FirstPlay = "first-boot"

// Play is a playbook that runs in the guest.
type Play struct {
	Ansible manifest.Ansible `json:"ansible"`
	// Bundle is the playbook's folder, by its digest; "" when the guest fetches it.
	Bundle string `json:"bundle,omitempty"`
	// Labels, Networks and Image make the groups of its inventory.
	Labels   map[string]string `json:"labels,omitempty"`
	Networks []string          `json:"networks,omitempty"`
	Image    string            `json:"image,omitempty"`
}

// WriteOut is the ISO: <dataDir>/seeds/<uid>-<hash[:12]>.iso, and the public host keys
// ("ssh-ed25519 AAAA…") and login that readiness, ssh and Ansible pin.
type WriteOut struct {
	Path     string   `json:"path"`
	HostKeys []string `json:"hostKeys"`
	Login    string   `json:"login"`
}

// ReaddressIn writes a seed like another but for its NICs: what else the guest was told
// stays, byte for byte.
type ReaddressIn struct {
	Server    activities.Server   `json:"server"`
	Seed      string              `json:"seed"` // path of the one it is like
	Ports     []manifest.Port     `json:"ports"`
	CloudInit *manifest.CloudInit `json:"cloudInit,omitempty"`
}

// ReaddressOut is the new seed; the other stays.
type ReaddressOut struct {
	Path string `json:"path"`
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
