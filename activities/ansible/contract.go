package ansible

import (
	"burrow.dev/burrow/activities"
	"burrow.dev/burrow/manifest"
)

// CheckIn asks for `ansible-playbook --syntax-check` on a bundle, before any side effect.
type CheckIn struct {
	Owner   string           `json:"owner"`  // "server/db"
	Bundle  string           `json:"bundle"` // digest in the blob store
	Ansible manifest.Ansible `json:"ansible"`
}

// Host is one server a run may reach.
type Host struct {
	Server   activities.Server `json:"server"`
	Network  string            `json:"network"`
	Address  string            `json:"address"`
	Login    string            `json:"login"`
	HostKeys []string          `json:"hostKeys"`
	Labels   map[string]string `json:"labels,omitempty"`
	Networks []string          `json:"networks,omitempty"`
	Image    string            `json:"image,omitempty"`
}

// RunIn runs playbooks of a bundle against hosts.
type RunIn struct {
	Owner   string           `json:"owner"`  // "server/db"
	Bundle  string           `json:"bundle"` // digest in the blob store
	Ansible manifest.Ansible `json:"ansible"`
	Hosts   []Host           `json:"hosts"`
}

// RunOut is a run that ended well. A failed task after its retries → Operator with task and
// message; unreachable → transient.
type RunOut struct {
	RunID  string                    `json:"runId"`
	LogKey string                    `json:"logKey"`
	Recap  map[string]manifest.Recap `json:"recap"`
}

// Progress is the heartbeat detail of a run.
type Progress struct {
	RunID string                    `json:"runId"`
	Play  string                    `json:"play,omitempty"`
	Task  string                    `json:"task,omitempty"`
	Host  string                    `json:"host,omitempty"`
	Recap map[string]manifest.Recap `json:"recap,omitempty"`
}

// ReapIn proves that no run of a server is alive (before a rerun, on delete and cancel).
type ReapIn struct {
	Server activities.Server `json:"server"`
}
