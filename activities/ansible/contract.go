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
	// Whole: plays may name every host of the inventory, not only Hosts (a Playbook's run).
	Whole bool `json:"whole,omitempty"`
	// InGuest names a run inside the one host, which is begun unless it was: "first-boot" is
	// that of the server's seed. "": it runs from outside.
	InGuest string `json:"inGuest,omitempty"`
}

// RunOut is a run that ended well. A failed task after its retries → Operator with task and
// message; unreachable → transient; either has a RunOut as the failure's details.
type RunOut struct {
	RunID  string                    `json:"runId"`
	LogKey string                    `json:"logKey"`
	Recap  map[string]manifest.Recap `json:"recap"`
	// Requirements is the digest of the requirements file; empty: there is none.
	Requirements string `json:"requirements,omitempty"`
}

// Progress is the heartbeat detail of a run.
type Progress struct {
	RunID string                    `json:"runId"`
	Play  string                    `json:"play,omitempty"`
	Task  string                    `json:"task,omitempty"`
	Host  string                    `json:"host,omitempty"`
	Recap map[string]manifest.Recap `json:"recap,omitempty"`
}

// ReapIn proves that no run is alive (before a rerun, on delete and cancel): none that may
// reach the server, or with Owner none of that owner.
type ReapIn struct {
	Server activities.Server `json:"server,omitzero"`
	Owner  string            `json:"owner,omitempty"` // "playbook/k3s"
}
