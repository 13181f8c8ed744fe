package state

import (
	"burrow.dev/burrow/activities"
	"burrow.dev/burrow/manifest"
)

// BeginIn asks for a record to be set Provisioning (or Deleting) by an operation.
type BeginIn struct {
	Kind        manifest.Kind      `json:"kind"`
	Metadata    manifest.Metadata  `json:"metadata"`
	Spec        []byte             `json:"spec,omitempty"` // normal-form JSON of the spec; empty for a delete
	Phase       manifest.Phase     `json:"phase"`          // PhaseProvisioning, PhaseUpdating or PhaseDeleting
	Operation   manifest.Operation `json:"operation"`
	Bundle      string             `json:"bundle,omitempty"`
	RequestedBy string             `json:"requestedBy,omitempty"`
	// Declared is what a server is to become (Updating): what there is to change is
	// decided before the record is the operation's.
	Declared *manifest.Declared `json:"declared,omitempty"`
}

// BeginOut is the record as written.
//
// Provisioning: absent, or Failed with nothing left → new UID. A record that this very
// run (Operation.RunID) wrote → the same answer again. A settled record that exists →
// Permanent ErrExists. Another operation's → ErrBusy.
// Updating: absent → Permanent ErrNotFound; on a lost host → Permanent; settled and not Failed → the phase and the
// operation change, spec and status stay.
// Deleting: absent → Found false, success. The record keeps its UID and status; a host and
// networks that an interrupted build had not noted yet are filled in from its reservation
// and references.
type BeginOut struct {
	Found  bool            `json:"found"`
	Record manifest.Record `json:"record"`
	// Decision answers Declared; what cannot be changed → Permanent, and nothing is written.
	Decision manifest.Decision `json:"decision,omitzero"`
	// Lost are the hosts that are declared lost, for a delete: it does not wait for them.
	Lost []string `json:"lost,omitempty"`
}

// FinishIn writes the settled status of a record whole. The phase is Status.Phase.
// Conflict-safe: only while the record still carries UID and the operation's RunID.
// With Spec, what is declared is replaced in the same write, and the generation goes up if
// it differs.
type FinishIn struct {
	Kind   manifest.Kind   `json:"kind"`
	Name   string          `json:"name"`
	UID    string          `json:"uid"`
	Status manifest.Status `json:"status"`
	// Spec is what is declared from now on; empty: as before.
	Spec []byte `json:"spec,omitempty"`
	// Metadata goes with Spec: comment, labels and nodeName.
	Metadata manifest.Metadata `json:"metadata,omitzero"`
}

// FailIn ends a build as Failed with its reason. Its resources are gone by then; where an
// undo could not finish, Left says what is known of them, so that a delete finds them.
type FailIn struct {
	Kind    manifest.Kind   `json:"kind"`
	Name    string          `json:"name"`
	UID     string          `json:"uid"`
	Message string          `json:"message"`
	Left    manifest.Status `json:"left,omitzero"`
}

// HoldIn sets or clears the hold of a server that waits for a person.
// Message empty: the operation goes on (Phase back to Going, NeedsAttention cleared).
// Status carries what is known so far (host, ports, disks, login), so that ssh works while held.
type HoldIn struct {
	Kind    manifest.Kind   `json:"kind"`
	Name    string          `json:"name"`
	UID     string          `json:"uid"`
	Message string          `json:"message"`
	Status  manifest.Status `json:"status"`
	// Going is the phase of the operation while it is not held; empty is Provisioning.
	Going manifest.Phase `json:"going,omitempty"`
}

// NoteIn writes what is known so far of a server that is being built (host, addresses,
// ports, disks, seed, login, host keys); phase, operation and message stay. From then on
// the host can bring the server up again by itself after a power cut.
type NoteIn struct {
	Kind   manifest.Kind   `json:"kind"`
	Name   string          `json:"name"`
	UID    string          `json:"uid"`
	Status manifest.Status `json:"status"`
}

// RemoveIn deletes a record (end of a delete). Absent is success; another UID changes nothing.
type RemoveIn struct {
	Kind manifest.Kind `json:"kind"`
	Name string        `json:"name"`
	UID  string        `json:"uid"`
}

// LookIn asks for a record as it is now.
type LookIn struct {
	Kind manifest.Kind `json:"kind"`
	Name string        `json:"name"`
	// Declared asks for the decision about it as well; nil: only for the record.
	Declared *manifest.Declared `json:"declared,omitempty"`
}

// LookOut is the record. Absent → Found false, success. What is declared and cannot be →
// Permanent, with the fields' names.
type LookOut struct {
	Found    bool              `json:"found"`
	Record   manifest.Record   `json:"record"`
	Decision manifest.Decision `json:"decision,omitzero"`
}

// AwaitClosedIn waits (heartbeating) until a workflow has no open run. Unknown is closed.
type AwaitClosedIn struct {
	WorkflowID string `json:"workflowId"`
}

// VolumesIn attaches (or detaches) existing Volume records to a server, all or none,
// in one transaction. Attached to another server (by uid) → Permanent, names it.
// Absent volume → Permanent. Detach: only where attached to this uid.
type VolumesIn struct {
	Server activities.Server `json:"server"`
	Names  []string          `json:"names"`
	// All detaches whatever is attached to the uid, named or not.
	All bool `json:"all,omitempty"`
}

// VolumesOut holds the volumes' records, in order.
type VolumesOut struct {
	Records []manifest.Record `json:"records"`
}

// AdoptIn takes over a record whose operation ended without finishing. The caller's
// workflow ID is the resource, so no other operation is open on it.
type AdoptIn struct {
	Kind      manifest.Kind      `json:"kind"`
	Name      string             `json:"name"`
	UID       string             `json:"uid"`
	Operation manifest.Operation `json:"operation"`
}

// AdoptOut is the record as it was, completed as BeginOut is for a delete. Found false:
// absent, made again, or settled by now; there is nothing to do.
type AdoptOut struct {
	Found  bool            `json:"found"`
	Record manifest.Record `json:"record"`
	// Was is the operation that did not finish.
	Was manifest.Operation `json:"was"`
	// Lost are the hosts that are declared lost.
	Lost []string `json:"lost,omitempty"`
}

// TargetsIn asks for the servers of a Playbook.
type TargetsIn struct {
	Owner   string           `json:"owner"` // "playbook/k3s"
	Targets manifest.Targets `json:"targets"`
}

// TargetsOut are the servers, by name. One that is missing, failed, stopped or on a lost host
// → Permanent, and so are labels that no server has, more than MaxTargets, and servers on more than one
// host. One that another operation works on → transient: it is waited for.
type TargetsOut struct {
	Servers []Target `json:"servers"`
}

// MaxTargets is how many servers one run may be over: all of them are in one message.
const MaxTargets = 200

// Target is what a run needs of a server.
type Target struct {
	Server   activities.Server `json:"server"`
	Identity string            `json:"identity"` // manifest.TargetIdentity
	Host     string            `json:"host"`
	Login    string            `json:"login"`
	HostKeys []string          `json:"hostKeys"`
	Ports    []manifest.Port   `json:"ports"`
	Labels   map[string]string `json:"labels,omitempty"`
	Image    string            `json:"image,omitempty"`
}
