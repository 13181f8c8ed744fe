package keyring

// Rotation is what a change of the master key is asked with.
type Rotation struct {
	// By is who asks, and Host where the answering worker is, for those who look later.
	By, Host string
	// Without are hosts whose worker may be down: it cannot say that it has the new key.
	Without []string
}

// Step is how far a rotation is.
type Step struct {
	Phase Phase
	// KeyID is the key that is rotated to, and Place where the answering worker has it.
	KeyID, Place string
	// Hosts are waited for, in Waits.
	Hosts []string
	// Done of the secrets have been encrypted again.
	Done int
}

// Phase is one of a rotation's, in their order.
type Phase string

// Phases of a rotation.
const (
	// Resumes: an earlier one was interrupted after its switch; it is finished, and no other
	// key is made.
	Resumes Phase = "resumes"
	// Chosen: the new key is on this worker's disk, and noted in etcd.
	Chosen Phase = "chosen"
	// Waits for workers that have not got the new key yet.
	Waits Phase = "waits"
	// Switched: from now on everything is encrypted under the new key.
	Switched Phase = "switched"
	// Encrypts: one more secret is encrypted again.
	Encrypts Phase = "encrypts"
	// Done: nothing is under another key.
	Done Phase = "done"
)
