package state

import (
	"context"

	"go.temporal.io/sdk/client"

	"burrow.dev/burrow/internal/etcdstate"
	"burrow.dev/burrow/internal/temporalclient"
	"burrow.dev/burrow/manifest"
)

// Store is what the activities need of etcd (internal/etcdstate).
type Store interface {
	Each(ctx context.Context, kind manifest.Kind, each func(manifest.Record) error) error
	GetMany(ctx context.Context, kind manifest.Kind, names ...string) ([]manifest.Record, error)
	List(ctx context.Context, kind manifest.Kind) ([]manifest.Record, error)
	Create(ctx context.Context, rec manifest.Record) (manifest.Record, error)
	Update(ctx context.Context, kind manifest.Kind, name string, change func(*manifest.Record) error) (manifest.Record, error)
	UpdateAll(ctx context.Context, kind manifest.Kind, names []string, change func([]*manifest.Record) error) ([]manifest.Record, error)
	Delete(ctx context.Context, kind manifest.Kind, name, uid string) error
	NoteDeleted(ctx context.Context, kind manifest.Kind, name, uid string) error
	Placement(ctx context.Context, uid string) (host string, err error)
	AllReferences(ctx context.Context) ([]etcdstate.Reference, error)
	LostNames(ctx context.Context) ([]string, error)
}

// Workflows is what the activities need of Temporal's client.
type Workflows interface {
	temporalclient.Describer
	GetWorkflow(ctx context.Context, workflowID, runID string) client.WorkflowRun
}

// Activities are the state.* activities.
type Activities struct {
	store     Store
	workflows Workflows
}

// New builds the activities.
func New(store Store, workflows Workflows) *Activities {
	return &Activities{store: store, workflows: workflows}
}
