package faults

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"burrow.dev/burrow/activities"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/manifest"
	"burrow.dev/burrow/workflows"
)

// slot is a place where one cell at a time runs: two networks and a volume of its own, so
// that the networks come and go with its server.
type slot struct {
	number   int
	networks []manifest.Record
	kept     manifest.Record // the volume
}

func (n *slot) network(i int) string {
	return fmt.Sprintf("%s-%02d", []string{"nat", "iso"}[i], n.number)
}

func (n *slot) volume() string { return fmt.Sprintf("keep-%02d", n.number) }

// subject is the resource of one cell.
type subject struct {
	*site
	slot *slot
	kind manifest.Kind
	name string
	id   string // of an operation on no resource
	// onFailure and keys (a path of the key server) of a server's manifest
	onFailure manifest.OnFailure
	keys      string
	nics      []manifest.NIC
	checksum  string          // of an image's file
	last      manifest.Record // as last seen
}

// ref is also the ID of its workflows.
func (c *subject) ref() string { return cmp.Or(c.id, manifest.Ref(c.kind, c.name)) }

const serverManifest = `apiVersion: v1
kind: Server
metadata: {name: %[1]s}
spec:
  cpu: 1
  memory: 64
  mmImage: blank
  readiness: running
  auth: {url: ["%[5]s"]}
  storage:
    - {metadata: {name: data}, spec: {size: 1}}
    - {metadata: {name: %[4]s}}
  networkInterface: [{name: a, networkname: %[2]s}, {name: b, networkname: %[3]s}]
`

// load reads a manifest as apply does.
func load(ctx context.Context, text string) ([]*manifest.Document, error) {
	set, problems := manifest.Load(ctx, []string{"-"}, manifest.Options{AllowHTTP: true, Stdin: strings.NewReader(text)})
	if len(problems) > 0 {
		return nil, fmt.Errorf("manifest: %v", problems)
	}
	return set.Documents, nil
}

// provisionIn is what an apply of the subject's server asks for.
func (c *subject) provisionIn(ctx context.Context) (workflows.ProvisionServerIn, error) {
	text := fmt.Sprintf(serverManifest, c.name, c.slot.network(0), c.slot.network(1), c.slot.volume(), c.site.keys.URL+cmp.Or(c.keys, "/good")+"/"+c.name)
	docs, err := load(ctx, text)
	if err != nil {
		return workflows.ProvisionServerIn{}, err
	}
	in := workflows.ProvisionServerIn{Metadata: docs[0].Metadata, Spec: *docs[0].Server}
	if c.onFailure != "" {
		in.Spec.OnFailure = c.onFailure
	}
	c.nics = in.Spec.NetworkInterface
	return in, nil
}

// begin starts an operation on the subject, as the CLI does.
func (s *site) begin(ctx context.Context, id, workflow string, in any) (client.WorkflowRun, error) {
	return s.temporal.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID: id, TaskQueue: activities.ControlQueue,
		WorkflowIDConflictPolicy: enumspb.WORKFLOW_ID_CONFLICT_POLICY_FAIL,
		WorkflowIDReusePolicy:    enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
		StaticSummary:            "fault test",
	}, workflow, in)
}

// finish waits for the end of an operation, over every death of Temporal, and gives how
// it ended: nil, or the workflow's own error.
func (s *site) finish(ctx context.Context, run client.WorkflowRun) (end error, err error) {
	err = until(ctx, run.GetID()+" has ended", func() error {
		end = run.Get(ctx, nil)
		var ended *temporal.WorkflowExecutionError
		if end == nil || errors.As(end, &ended) {
			return nil
		}
		return end
	})
	if err != nil {
		err = fmt.Errorf("%w\n%s", err, s.pending(run))
	}
	return end, err
}

// describe asks Temporal how an operation stands.
func (s *site) describe(ctx context.Context, run client.WorkflowRun) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	d, err := s.temporal.DescribeWorkflow(ctx, run.GetID(), run.GetRunID())
	if err != nil {
		return nil, err
	}
	return d.RawResponse, nil
}

// current is describe of the subject's own operation, which a larger one may have started.
func (c *subject) current(ctx context.Context) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	d, err := c.temporal.DescribeWorkflow(ctx, c.ref(), "")
	if err != nil {
		return nil, err
	}
	return d.RawResponse, nil
}

// pending says what an operation that does not end waits for.
func (s *site) pending(run client.WorkflowRun) string {
	d, err := s.describe(context.Background(), run)
	if err != nil {
		return err.Error()
	}
	var all []string
	for _, a := range d.GetPendingActivities() {
		all = append(all, fmt.Sprintf("%s: %s, attempt %d, last failure %q", a.GetActivityType().GetName(), a.GetState(), a.GetAttempt(), a.GetLastFailure().GetMessage()))
	}
	return "pending: " + strings.Join(all, "; ")
}

// record reads the subject's record; ok is false when there is none.
func (c *subject) record(ctx context.Context) (rec manifest.Record, ok bool, err error) {
	rec, err = c.store.Get(ctx, c.kind, c.name)
	if errors.Is(err, errs.ErrNotFound) {
		return rec, false, nil
	}
	if err == nil {
		c.last = rec
	}
	return rec, err == nil, err
}

// traces are what a census shows of the subject.
func (c *subject) traces(census, before []string) []string {
	var i identity
	switch c.kind {
	case manifest.KindServer:
		i.addServer(c.last, c.nics)
		for n, rec := range c.slot.networks {
			i.addNetwork(rec, fmt.Sprintf("NET%d", n))
		}
		i.add(c.slot.volume(), "KEPT")
		i.add(c.slot.kept.Metadata.UID[:8], "KEPT8")
	case manifest.KindNetwork:
		i.addNetwork(c.last, "NET")
	case manifest.KindVolume:
		if uid := c.last.Metadata.UID; uid != "" {
			i.add(uid, "UID")
			i.add(uid[:8], "UID8")
		}
	case manifest.KindImage:
		if c.checksum != "" {
			i.add(c.checksum, "SHA")
			i.add(c.checksum[:16], "SHA16")
		}
		i.add(c.last.Metadata.UID, "UID")
	}
	i.add(c.name, "NAME")
	return i.of(difference(census, before))
}

// remove deletes what there is of the subject, by the user's way.
func (c *subject) remove(ctx context.Context) error {
	names := map[manifest.Kind]string{
		manifest.KindServer: workflows.NameDeleteServer, manifest.KindNetwork: workflows.NameDeleteNetwork, manifest.KindVolume: workflows.NameDeleteVolume,
		manifest.KindImage: workflows.NameDeleteImage,
	}
	if c.kind == manifest.KindImage {
		if err := c.removeImage(ctx); err != nil {
			return err
		}
	}
	run, err := c.begin(ctx, c.ref(), names[c.kind], workflows.DeleteIn{Name: c.name})
	if err != nil {
		return err
	}
	end, err := c.finish(ctx, run)
	return errors.Join(end, err)
}

// update sends a decision to a held operation.
func (s *site) update(ctx context.Context, run client.WorkflowRun, name string, in any) error {
	h, err := s.temporal.UpdateWorkflow(ctx, client.UpdateWorkflowOptions{
		WorkflowID: run.GetID(), RunID: run.GetRunID(), UpdateName: name, Args: []any{in},
		WaitForStage: client.WorkflowUpdateStageCompleted,
	})
	if err != nil {
		return err
	}
	return h.Get(ctx, nil)
}

// reached waits until the order was obeyed at least n times; an operation that ends before
// will not get there.
func (c *subject) reached(ctx context.Context, activity string, n int) error {
	var early error
	err := untilEvery(ctx, reachedEvery, fmt.Sprintf("%s: the fault in %s", c.ref(), activity), func() error {
		ended := c.ended(ctx) // before counting: what ends by the fault has counted it
		done := c.orders.done(c.ref(), activity)
		switch {
		case done >= n:
			return nil
		case ended != "":
			early = fmt.Errorf("%s ended (%s), and the fault in %s happened %d times, not %d", c.ref(), ended, activity, done, n)
			return nil
		}
		return fmt.Errorf("it happened %d times, not %d", done, n)
	})
	return errors.Join(err, early)
}

// reachedEvery: each look asks Temporal.
const reachedEvery = 200 * time.Millisecond

// ended gives how the subject's last operation ended, and why; "" while it runs, or nobody
// can tell.
func (c *subject) ended(ctx context.Context) string {
	d, err := c.temporal.DescribeWorkflow(ctx, c.ref(), "")
	if err != nil || d.Status == enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING {
		return ""
	}
	if err := c.temporal.GetWorkflow(ctx, c.ref(), "").Get(ctx, nil); err != nil {
		return fmt.Sprintf("%s: %v", d.Status, err)
	}
	return d.Status.String()
}
