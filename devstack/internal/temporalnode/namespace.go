package temporalnode

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/api/enums/v1"
	namespacepb "go.temporal.io/api/namespace/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/server/common/config"
	sqliteschema "go.temporal.io/server/schema/sqlite"
	"google.golang.org/protobuf/types/known/durationpb"
)

// DefaultRetention is how long the history of a closed operation can be read.
const DefaultRetention = 90 * 24 * time.Hour

// Namespace is what is registered before the first client comes.
type Namespace struct {
	Name      string
	Retention time.Duration
	// SearchAttributes by name; those already there are left alone.
	SearchAttributes map[string]enums.IndexedValueType
}

// BurrowNamespace is the namespace of Burrow's workflows with its typed search attributes.
func BurrowNamespace() Namespace {
	return Namespace{
		Name:      "burrow",
		Retention: DefaultRetention,
		SearchAttributes: map[string]enums.IndexedValueType{
			"BurrowServer":         enums.INDEXED_VALUE_TYPE_KEYWORD,
			"BurrowHost":           enums.INDEXED_VALUE_TYPE_KEYWORD,
			"BurrowStep":           enums.INDEXED_VALUE_TYPE_KEYWORD,
			"BurrowPhase":          enums.INDEXED_VALUE_TYPE_KEYWORD,
			"BurrowImage":          enums.INDEXED_VALUE_TYPE_KEYWORD,
			"BurrowRequestedBy":    enums.INDEXED_VALUE_TYPE_KEYWORD,
			"BurrowNeedsAttention": enums.INDEXED_VALUE_TYPE_BOOL,
			"BurrowCPU":            enums.INDEXED_VALUE_TYPE_INT,
			"BurrowMemoryMiB":      enums.INDEXED_VALUE_TYPE_INT,
		},
	}
}

// createMissing writes a namespace into a store that no server has open yet, which
// spares its clients the wait until every service has seen a registration. One that is
// there already stays as it is; reconcile brings it up to date later.
func (n Namespace) createMissing(store *config.SQL) error {
	row, err := sqliteschema.NewNamespaceConfig(clusterName, n.Name, false, n.SearchAttributes)
	if err != nil {
		return fmt.Errorf("namespace %s: map search attributes: %w", n.Name, err)
	}
	row.Detail.Config.Retention = durationpb.New(n.Retention)
	if err := sqliteschema.CreateNamespaces(store, row); err != nil {
		return fmt.Errorf("namespace %s: create: %w", n.Name, err)
	}
	return nil
}

// reconcile adds the search attributes that an older Burrow did not have and sets
// the retention. It refuses an attribute that exists with another type.
func (n Namespace) reconcile(ctx context.Context, c client.Client) error {
	described, err := c.WorkflowService().DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: n.Name})
	if err != nil {
		return fmt.Errorf("namespace %s: describe: %w", n.Name, err)
	}
	if described.GetConfig().GetWorkflowExecutionRetentionTtl().AsDuration() != n.Retention {
		_, err := c.WorkflowService().UpdateNamespace(ctx, &workflowservice.UpdateNamespaceRequest{
			Namespace: n.Name,
			Config:    &namespacepb.NamespaceConfig{WorkflowExecutionRetentionTtl: durationpb.New(n.Retention)},
		})
		if err != nil {
			return fmt.Errorf("namespace %s: set retention to %s: %w", n.Name, n.Retention, err)
		}
	}
	listed, err := c.OperatorService().ListSearchAttributes(ctx, &operatorservice.ListSearchAttributesRequest{Namespace: n.Name})
	if err != nil {
		return fmt.Errorf("namespace %s: list search attributes: %w", n.Name, err)
	}
	missing := map[string]enums.IndexedValueType{}
	for name, kind := range n.SearchAttributes {
		have, ok := listed.GetCustomAttributes()[name]
		switch {
		case !ok:
			missing[name] = kind
		case have != kind:
			return fmt.Errorf("namespace %s: search attribute %s is %s, this version needs %s; start with a new data folder", n.Name, name, have, kind)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	_, err = c.OperatorService().AddSearchAttributes(ctx, &operatorservice.AddSearchAttributesRequest{Namespace: n.Name, SearchAttributes: missing})
	var exists *serviceerror.AlreadyExists
	if err != nil && !errors.As(err, &exists) {
		return fmt.Errorf("namespace %s: add search attributes: %w", n.Name, err)
	}
	return nil
}
