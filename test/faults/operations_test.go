package faults

import (
	"context"
	"fmt"
	"slices"

	"go.temporal.io/sdk/client"

	"burrow.dev/burrow/activities"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/manifest"
	"burrow.dev/burrow/workflows"
)

// place is an activity of an operation, by the step that users see.
type place struct {
	step, activity string
	// atomic: one transaction of etcd, which happens or does not: no error can follow it.
	atomic bool
	// settled: the operation has its result by now, and nothing is undone any more.
	settled bool
	// stays: what the step does is not undone.
	stays bool
	// leaves: what the step does not remove stays until the resource is deleted.
	leaves bool
	// unplugs: what is undone after the step needs a guest that lets go of its disks. The
	// guests of these tests have no operating system and never do.
	unplugs bool
	// plugs: the step gives the guest a device that an undo asks back in vain; plugged: it
	// has one by then. The record says that it is there until the guest's restart.
	plugs, plugged bool
	// after is an activity that has begun before this one, where a step calls one again; "":
	// the first call is meant.
	after string
}

// operation is something users ask for.
type operation struct {
	name  string
	kind  manifest.Kind
	steps []place
	// ends is the world after it went well, by the name of a learned template.
	ends string
	// prepare brings the subject to where the operation begins; nil: nothing.
	prepare func(ctx context.Context, c *subject) error
	start   func(ctx context.Context, c *subject) (client.WorkflowRun, error)
	// builds: its failure leaves a record that says Failed; else one that says what is.
	builds bool
	// deletes: a cancel does not stop it.
	deletes bool
	// from is the world that its undo goes back to, by the name of a learned template: that
	// after prepare. "": it has no undo, or makes something new.
	from string
	// again is the world when it is asked for again after it had its result; "": ends.
	again string
	// plays: it runs the playbook that witnesses its runs.
	plays bool
	// holds: onFailure of the server's manifest may make it wait for a person.
	holds bool
	// undos are its compensations when everything is made and breaks comes.
	undos  []place
	breaks breaking
}

// Learned templates; "" is a world without a trace of the subject.
const (
	worldGone    = ""
	worldRunning = "a running server"
	worldStopped = "a stopped server"
	worldNetwork = "a network"
	worldVolume  = "a volume"
)

func provision(ctx context.Context, c *subject) (client.WorkflowRun, error) {
	in, err := c.provisionIn(ctx)
	if err != nil {
		return nil, err
	}
	return c.begin(ctx, c.ref(), workflows.NameProvisionServer, in)
}

// well runs an operation that must succeed.
func (c *subject) well(ctx context.Context, start func(context.Context, *subject) (client.WorkflowRun, error)) error {
	run, err := start(ctx, c)
	if err != nil {
		return err
	}
	end, err := c.finish(ctx, run)
	if err == nil {
		err = end
	}
	if err == nil {
		_, _, err = c.record(ctx)
	}
	return err
}

func power(action workflows.PowerAction) func(context.Context, *subject) (client.WorkflowRun, error) {
	return func(ctx context.Context, c *subject) (client.WorkflowRun, error) {
		return c.begin(ctx, c.ref(), workflows.NamePowerServer, workflows.PowerServerIn{Name: c.name, Action: action})
	}
}

func withServer(ctx context.Context, c *subject) error { return c.well(ctx, provision) }

func withStoppedServer(ctx context.Context, c *subject) error {
	if err := c.well(ctx, provision); err != nil {
		return err
	}
	return c.well(ctx, power(workflows.PowerStop))
}

func (c *subject) networkIn(ctx context.Context) (workflows.CreateNetworkIn, error) {
	docs, err := load(ctx, fmt.Sprintf("apiVersion: v1\nkind: Network\nmetadata: {name: %s}\nspec: {mode: nat, subnets: [{cidr: 10.%d.0.0/20}]}\n", c.name, 160+c.slot.number))
	if err != nil {
		return workflows.CreateNetworkIn{}, err
	}
	return workflows.CreateNetworkIn{Metadata: docs[0].Metadata, Spec: *docs[0].Network}, nil
}

func createNetwork(ctx context.Context, c *subject) (client.WorkflowRun, error) {
	in, err := c.networkIn(ctx)
	if err != nil {
		return nil, err
	}
	return c.begin(ctx, c.ref(), workflows.NameCreateNetwork, in)
}

func (c *subject) volumeIn(ctx context.Context) (workflows.CreateVolumeIn, error) {
	docs, err := load(ctx, fmt.Sprintf("apiVersion: v1\nkind: Volume\nmetadata: {name: %s}\nspec: {size: 1}\n", c.name))
	if err != nil {
		return workflows.CreateVolumeIn{}, err
	}
	return workflows.CreateVolumeIn{Metadata: docs[0].Metadata, Spec: *docs[0].Volume}, nil
}

func createVolume(ctx context.Context, c *subject) (client.WorkflowRun, error) {
	in, err := c.volumeIn(ctx)
	if err != nil {
		return nil, err
	}
	return c.begin(ctx, c.ref(), workflows.NameCreateVolume, in)
}

func deletion(workflow string) func(context.Context, *subject) (client.WorkflowRun, error) {
	return func(ctx context.Context, c *subject) (client.WorkflowRun, error) {
		return c.begin(ctx, c.ref(), workflow, workflows.DeleteIn{Name: c.name})
	}
}

var (
	powerOff = []place{{step: "shut down", activity: activities.DomainShutdown}, {step: "unwire OVS", activity: activities.NetworkUnwire}}
	powerOn  = []place{
		{step: "ensure networks", activity: activities.NetworkEnsure},
		{step: "define and start", activity: activities.DomainStart},
		{step: "wire OVS", activity: activities.NetworkWire},
		{step: "wire OVS (CPUs)", activity: activities.DomainResume},
	}
	atBegin = place{step: "record", activity: activities.StateBegin, atomic: true}
	atEnd   = place{step: "finish", activity: activities.StateFinish, atomic: true}
)

func steps(parts ...[]place) []place {
	all := []place{atBegin}
	for _, p := range parts {
		all = append(all, p...)
	}
	return append(all, atEnd)
}

// operations is every operation with its activities, in their order.
func operations() []operation {
	return slices.Concat(powers(), changes(), plugging(), playing(), others(), imaging())
}

// powers build a server, stop and start it, and delete it.
func powers() []operation {
	return []operation{
		{
			name: "provision a server", kind: manifest.KindServer, ends: worldRunning, start: provision, builds: true, holds: true,
			undos: undosOfProvision, breaks: neverReady,
			steps: steps([]place{
				{step: "record (attach volumes)", activity: activities.StateAttachVolumes, atomic: true},
				{step: "place", activity: activities.PlacePlace, atomic: true},
				{step: "fetch auth keys", activity: activities.KeysFetch},
				{step: "allocate addresses", activity: activities.IPAMAllocate},
				{step: "ensure image", activity: activities.ImageEnsure},
				{step: "build volumes", activity: activities.VolumeBuild},
				{step: "ensure networks", activity: activities.NetworkEnsure},
				{step: "probe addresses", activity: activities.NetworkProbe},
				{step: "write seed", activity: activities.SeedWrite},
				{step: "define and start (note)", activity: activities.StateNote, atomic: true},
				{step: "define and start", activity: activities.DomainStart},
				{step: "wire OVS", activity: activities.NetworkWire},
				{step: "wire OVS (CPUs)", activity: activities.DomainResume},
				{step: "wait until ready", activity: activities.GuestWaitReady},
			}),
		},
		{
			name: "delete a server", kind: manifest.KindServer, ends: worldGone, deletes: true,
			prepare: withServer, start: deletion(workflows.NameDeleteServer),
			steps: []place{
				atBegin,
				{step: "stop playbook", activity: activities.AnsibleReap},
				{step: "remove domain", activity: activities.DomainRemove},
				{step: "unwire OVS", activity: activities.NetworkUnwire},
				{step: "remove seed", activity: activities.SeedRemove},
				{step: "remove volumes", activity: activities.VolumeRemove},
				{step: "release networks", activity: activities.NetworkRelease},
				{step: "release addresses", activity: activities.IPAMRelease},
				{step: "release host", activity: activities.PlaceRelease, atomic: true},
				{step: "release host (volumes)", activity: activities.StateDetachVolumes, atomic: true},
				{step: "finish", activity: activities.StateRemove, atomic: true},
			},
		},
		{name: "stop a server", kind: manifest.KindServer, ends: worldStopped, prepare: withServer, start: power(workflows.PowerStop), steps: steps(powerOff)},
		{name: "start a server", kind: manifest.KindServer, ends: worldRunning, prepare: withStoppedServer, start: power(workflows.PowerStart), steps: steps(powerOn)},
		{name: "restart a server", kind: manifest.KindServer, ends: worldRunning, prepare: withServer, start: power(workflows.PowerRestart), steps: steps(powerOff, powerOn)},
	}
}

// others are the operations of what servers are made of.
func others() []operation {
	return []operation{
		{
			name: "create a network", kind: manifest.KindNetwork, ends: worldNetwork, start: createNetwork, builds: true,
			steps: steps([]place{{step: "settle subnets", activity: activities.IPAMSettleNetwork}}),
		},
		{
			name: "delete a network", kind: manifest.KindNetwork, ends: worldGone, deletes: true,
			prepare: func(ctx context.Context, c *subject) error { return c.well(ctx, createNetwork) },
			start:   deletion(workflows.NameDeleteNetwork),
			steps: []place{
				atBegin,
				{step: "forget addresses", activity: activities.IPAMForgetNetwork},
				{step: "finish", activity: activities.StateRemove, atomic: true},
			},
		},
		{
			name: "create a volume", kind: manifest.KindVolume, ends: worldVolume, start: createVolume, builds: true,
			steps: steps([]place{
				{step: "place", activity: activities.PlacePlace, atomic: true},
				{step: "create volume", activity: activities.VolumeCreate},
			}),
		},
		{
			name: "delete a volume", kind: manifest.KindVolume, ends: worldGone, deletes: true,
			prepare: func(ctx context.Context, c *subject) error { return c.well(ctx, createVolume) },
			start:   deletion(workflows.NameDeleteVolume),
			steps: []place{
				atBegin,
				{step: "delete volume", activity: activities.VolumeDelete},
				{step: "release host", activity: activities.PlaceRelease, atomic: true},
				{step: "finish", activity: activities.StateRemove, atomic: true},
			},
		},
	}
}

// undosOfProvision are the compensations of a provision that fails when everything is built.
var undosOfProvision = []place{
	{step: "undo: unwire OVS", activity: activities.NetworkUnwire},
	{step: "undo: remove domain", activity: activities.DomainRemove},
	{step: "undo: remove seed", activity: activities.SeedRemove},
	{step: "undo: release networks", activity: activities.NetworkRelease},
	{step: "undo: remove volumes", activity: activities.VolumeRemove},
	{step: "undo: release addresses", activity: activities.IPAMRelease},
	{step: "undo: release host", activity: activities.PlaceRelease, atomic: true},
	{step: "undo: detach volumes", activity: activities.StateDetachVolumes, atomic: true},
	{step: "undo: record", activity: activities.StateFail, atomic: true},
}

// breaking is how an operation is made to fail so late that everything is to be undone.
type breaking struct {
	activity string
	order    order
}

// neverReady: the guest is given up when all is built. However often: the report of an
// attempt that a neighbour's fault hits is lost.
var neverReady = breaking{activities.GuestWaitReady, order{Deed: failAfter, Class: string(errs.Permanent), Times: always}}
