package workflows

import (
	"fmt"
	"strings"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"burrow.dev/burrow/manifest"
)

// StepState is where a step stands.
type StepState string

// Step states.
const (
	StepPending  StepState = "pending"
	StepRunning  StepState = "running"
	StepDone     StepState = "done"
	StepFailed   StepState = "failed"
	StepSkipped  StepState = "skipped"
	StepUndoing  StepState = "undoing"
	StepHeldHere StepState = "held"
)

// Step is one step as users see it.
type Step struct {
	Name    string    `json:"name"`
	State   StepState `json:"state"`
	Started time.Time `json:"started,omitzero"`
	Ended   time.Time `json:"ended,omitzero"`
	// Detail says what the step works on, or what it found.
	Detail string `json:"detail,omitempty"`
	Error  string `json:"error,omitempty"`
}

// Progress answers QueryProgress. Attempts and the time of the next try are Temporal's
// own knowledge (pending activities) and are not repeated here.
type Progress struct {
	Operation string         `json:"operation"` // "ProvisionServer"
	Resource  string         `json:"resource"`  // "server/db"
	Phase     manifest.Phase `json:"phase"`
	Steps     []Step         `json:"steps"`
	// Held is the reason an operation waits for a person; empty: it does not.
	Held string `json:"held,omitempty"`
}

// Typed search attributes, registered by burrow-devstack and by docs/distributed.md.
var (
	searchServer    = temporal.NewSearchAttributeKeyKeyword("BurrowServer")
	searchHost      = temporal.NewSearchAttributeKeyKeyword("BurrowHost")
	searchStep      = temporal.NewSearchAttributeKeyKeyword("BurrowStep")
	searchPhase     = temporal.NewSearchAttributeKeyKeyword("BurrowPhase")
	searchAttention = temporal.NewSearchAttributeKeyBool("BurrowNeedsAttention")
	searchCPU       = temporal.NewSearchAttributeKeyInt64("BurrowCPU")
	searchMemory    = temporal.NewSearchAttributeKeyInt64("BurrowMemoryMiB")
	searchImage     = temporal.NewSearchAttributeKeyKeyword("BurrowImage")
	searchRequester = temporal.NewSearchAttributeKeyKeyword("BurrowRequestedBy")
)

// progress keeps the steps of one operation and shows them: as the query's answer, as
// the workflow's current details, and as search attributes.
type progress struct {
	Progress
	going manifest.Phase // the phase while nobody has to decide
}

func newProgress(ctx workflow.Context, operation, resource string, phase manifest.Phase, steps []string) (*progress, error) {
	p := &progress{Progress{Operation: operation, Resource: resource, Phase: phase}, phase}
	for _, name := range steps {
		p.Steps = append(p.Steps, Step{Name: name, State: StepPending})
	}
	err := workflow.SetQueryHandlerWithOptions(ctx, QueryProgress, func() (Progress, error) {
		return p.Progress, nil
	}, workflow.QueryHandlerOptions{Description: "The steps of the operation and where each stands."})
	return p, err
}

// step finds a step by name; one that was not announced is appended.
func (p *progress) step(name string) *Step {
	for i := range p.Steps {
		if p.Steps[i].Name == name {
			return &p.Steps[i]
		}
	}
	p.Steps = append(p.Steps, Step{Name: name, State: StepPending})
	return &p.Steps[len(p.Steps)-1]
}

func (p *progress) begin(ctx workflow.Context, name string) {
	s := p.step(name)
	s.State, s.Started, s.Ended, s.Error = StepRunning, workflow.Now(ctx), time.Time{}, ""
	p.show(ctx, searchStep.ValueSet(name))
}

func (p *progress) end(ctx workflow.Context, name string, err error) {
	s := p.step(name)
	s.Ended = workflow.Now(ctx)
	s.State = StepDone
	if err != nil {
		s.State, s.Error = StepFailed, reason(err)
	}
	p.show(ctx)
}

func (p *progress) detail(ctx workflow.Context, name, format string, args ...any) {
	p.step(name).Detail = fmt.Sprintf(format, args...)
}

func (p *progress) skip(ctx workflow.Context, name, why string) {
	s := p.step(name)
	s.State, s.Detail = StepSkipped, why
	p.show(ctx)
}

// hold shows that the operation waits for a person, or (why empty) no longer does.
func (p *progress) hold(ctx workflow.Context, name, why string) {
	p.Held = why
	phase := p.going
	if why != "" {
		phase = manifest.PhaseHeld
		p.step(name).State = StepHeldHere
	}
	p.Phase = phase
	p.show(ctx, searchAttention.ValueSet(why != ""), searchPhase.ValueSet(string(phase)))
}

// phase shows a new phase of the resource.
func (p *progress) phase(ctx workflow.Context, phase manifest.Phase) {
	p.Phase = phase
	p.show(ctx, searchPhase.ValueSet(string(phase)))
}

// show writes the current details and, when something changed there, search attributes.
func (p *progress) show(ctx workflow.Context, changes ...temporal.SearchAttributeUpdate) {
	workflow.SetCurrentDetails(ctx, p.markdown())
	if len(changes) > 0 {
		// An upsert only fails for a malformed key, which the tests would show.
		_ = workflow.UpsertTypedSearchAttributes(ctx, changes...)
	}
}

// markdown is what the Web UI shows as current details.
func (p *progress) markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "**%s** of `%s`: %s\n\n", p.Operation, p.Resource, p.Phase)
	if p.Held != "" {
		fmt.Fprintf(&b, "**Waits for you:** %s\n\n", p.Held)
	}
	b.WriteString("| step | state | |\n|---|---|---|\n")
	for _, s := range p.Steps {
		note := s.Detail
		if s.Error != "" {
			note = s.Error
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", s.Name, s.State, cell(note))
	}
	return b.String()
}

// cell makes text safe inside a Markdown table: a guest's or a playbook's words may be in it.
func cell(s string) string {
	return strings.NewReplacer("|", "\\|", "\n", " ", "\r", " ", "<", "&lt;", ">", "&gt;").Replace(s)
}
