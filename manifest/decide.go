package manifest

import (
	"encoding/json"
	"strings"

	"burrow.dev/burrow/internal/errs"
)

// Declared is what a document asks of its resource.
type Declared struct {
	Kind     Kind            `json:"kind"`
	Metadata Metadata        `json:"metadata"`
	Spec     json.RawMessage `json:"spec"` // in normal form
	// Bundle is the digest of the folder of a server's playbook, or of a Playbook.
	Bundle string `json:"bundle,omitempty"`
	// Targets are the identities of a Playbook's servers, by name, as far as they stand.
	Targets []string `json:"targets,omitempty"`
	// Restart: a server may be restarted for its change.
	Restart bool `json:"restart,omitempty"`
}

// Decision is what there is to do about what is declared. Neither: it is to be built.
type Decision struct {
	// Stands: it is as declared, and there is nothing to do.
	Stands bool `json:"stands,omitempty"`
	// Change is what leads a server that stands there.
	Change *ServerChange `json:"change,omitempty"`
}

// Decide compares what is declared with the resource's record (nil: there is none). What
// cannot be changed is the error, by its fields' names.
//
// Not for workflows: the answer changes with the fields that a version knows.
func Decide(rec *Record, d Declared) (Decision, error) {
	if rec == nil || rec.Status.Phase == PhaseFailed || !rec.Status.Phase.Settled() && rec.Status.Phase != PhaseUpdating {
		return Decision{}, nil
	}
	if rec.Status.Phase == PhaseDamaged {
		return Decision{}, errs.NewOperator(Ref(d.Kind, d.Metadata.Name), "compare with what stands", errs.Reason("%s", rec.Status.Message), "mend its record, then apply again")
	}
	if d.Kind == KindPlaybook {
		stands, err := ran(rec, d)
		return Decision{Stands: stands}, err
	}
	if d.Kind != KindServer {
		return Decision{Stands: true}, same(rec, d)
	}
	var spec ServerSpec
	if err := json.Unmarshal(d.Spec, &spec); err != nil {
		return Decision{}, errs.NewPermanent(Ref(d.Kind, d.Metadata.Name), "read its spec", err, "apply its manifest again")
	}
	change, err := ChangeServer(*rec, d.Metadata, spec, d.Bundle)
	if err != nil {
		return Decision{}, err
	}
	ref := Ref(d.Kind, d.Metadata.Name)
	if err := change.Err(ref); err != nil {
		return Decision{}, err
	}
	if err := change.NeedsRestart(ref, d.Restart || rec.Status.Off()); err != nil {
		return Decision{}, err
	}
	if change.Empty() {
		return Decision{Stands: true}, nil
	}
	return Decision{Change: &change}, nil
}

// same refuses a resource that is no server and differs from its record.
func same(rec *Record, d Declared) error {
	changed, err := SpecDifferences(rec.Spec, d.Spec)
	if err != nil {
		return err
	}
	changed = append(changed, MetadataDifferences(rec.Metadata.Metadata, d.Metadata)...)
	if len(changed) == 0 {
		return nil
	}
	ref := Ref(rec.Kind, rec.Metadata.Name)
	return errs.NewPermanent(ref, "apply",
		errs.Reason("it stands, and differs in %s: of what is built, only servers can be changed", strings.Join(changed, ", ")),
		"undo the edit, or `burrow delete "+ref+"` and apply again")
}
