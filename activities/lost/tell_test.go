package lost_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/serviceerror"

	"burrow.dev/burrow/activities/lost"
	"burrow.dev/burrow/internal/etcdstate"
	"burrow.dev/burrow/manifest"
)

// records are those in etcd, by kind; kvm1 is lost.
type records map[manifest.Kind][]manifest.Record

func (records) DeclareLost(_ context.Context, _ string, mark etcdstate.LostHost) (etcdstate.LostHost, error) {
	return mark, nil
}

func (records) LostHosts(context.Context) (map[string]etcdstate.LostHost, error) {
	return map[string]etcdstate.LostHost{"kvm1": {Since: time.Unix(1_700_000_000, 0)}}, nil
}

func (records) IsLost(_ context.Context, host string) (bool, error) { return host == "kvm1", nil }

func (records) Owe(context.Context, etcdstate.Debt) (bool, error) { return true, nil }

func (r records) List(_ context.Context, kind manifest.Kind) ([]manifest.Record, error) {
	return r[kind], nil
}

func (records) Reservations(context.Context) ([]etcdstate.Reserved, error) {
	return []etcdstate.Reserved{{Owner: "server/being-built", Host: "kvm1"}, {Owner: "server/elsewhere", Host: "kvm2"}}, nil
}

func (records) ReplaceOnLost(context.Context, string, manifest.Record) (bool, error) {
	return true, nil
}

// open are the operations that are open.
type open []string

func (o open) SignalWorkflow(_ context.Context, id, _, _ string, _ any) error {
	for _, ref := range o {
		if ref == id {
			return nil
		}
	}
	return serviceerror.NewNotFound("no open run of " + id)
}

func record(kind manifest.Kind, name, host string, busy bool) manifest.Record {
	rec := manifest.Record{Kind: kind}
	rec.Metadata.Name, rec.Status.Host, rec.Status.Phase = name, host, manifest.PhaseReady
	if busy {
		rec.Status.Operation = &manifest.Operation{Type: "RunPlaybook"}
	}
	return rec
}

func TestEveryOperationThatMayWaitForALostHostIsTold(t *testing.T) {
	store := records{
		manifest.KindServer:   {record(manifest.KindServer, "db", "kvm1", false), record(manifest.KindServer, "far", "kvm2", false)},
		manifest.KindVolume:   {record(manifest.KindVolume, "data", "kvm1", false)},
		manifest.KindImage:    {record(manifest.KindImage, "debian12", "", false)},
		manifest.KindPlaybook: {record(manifest.KindPlaybook, "cluster", "", true), record(manifest.KindPlaybook, "over", "", false)},
	}
	everything := open{"server/db", "server/far", "server/being-built", "server/elsewhere", "volume/data", "image/debian12", "playbook/cluster", "playbook/over"}
	out, err := lost.New(store, everything).Tell(t.Context(), lost.TellIn{Host: "kvm1"})
	require.NoError(t, err)
	require.Equal(t, []string{"db"}, out.Servers)
	require.Equal(t, []string{"image/debian12", "playbook/cluster", "server/being-built", "server/db", "volume/data"}, out.Told)

	out, err = lost.New(store, open{"server/db"}).Tell(t.Context(), lost.TellIn{Host: "kvm1"})
	require.NoError(t, err)
	require.Equal(t, []string{"server/db"}, out.Told, "what is not open need not know")

	out, err = lost.New(store, everything).Tell(t.Context(), lost.TellIn{Host: "kvm2"})
	require.NoError(t, err)
	require.Empty(t, out, "it is not lost")
}
