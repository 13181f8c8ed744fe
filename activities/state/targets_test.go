package state_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"burrow.dev/burrow/activities/state"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/internal/etcdstate"
	"burrow.dev/burrow/manifest"
)

// server writes the record of a server.
func (d desk) server(name, role, host string, phase manifest.Phase) {
	d.t.Helper()
	rec := manifest.Record{APIVersion: manifest.APIVersion, Kind: manifest.KindServer, Spec: []byte(`{"mmImage":"debian12"}`)}
	rec.Metadata.Name, rec.Metadata.UID, rec.Metadata.Labels = name, "uid-"+name, map[string]string{"role": role}
	rec.Status = manifest.Status{Phase: phase, Host: host, Login: "debian", Ports: []manifest.Port{{Network: "n"}}}
	_, err := d.store.Create(d.t.Context(), rec)
	require.NoError(d.t, err)
}

func TestTargetsAreTheServersNamedAndThoseWithTheLabels(t *testing.T) {
	d := newDesk(t)
	d.server("web-2", "web", "kvm1", manifest.PhaseRunning)
	d.server("db", "db", "kvm1", manifest.PhaseRunning)
	d.server("web-1", "web", "kvm1", manifest.PhaseRunning)
	d.server("mail", "mail", "kvm2", manifest.PhaseStopped)
	out, err := d.a.Targets(t.Context(), state.TargetsIn{
		Owner: "playbook/p", Targets: manifest.Targets{Servers: []string{"db"}, Selector: map[string]string{"role": "web"}},
	})
	require.NoError(t, err)
	var names []string
	for _, s := range out.Servers {
		names = append(names, s.Identity)
	}
	require.Equal(t, []string{"db@uid-db.0", "web-1@uid-web-1.0", "web-2@uid-web-2.0"}, names)
	require.Equal(t, "debian12", out.Servers[0].Image)
}

func TestTargetsThatCannotBeReachedAreNamed(t *testing.T) {
	d := newDesk(t)
	d.server("up", "a", "kvm1", manifest.PhaseRunning)
	d.server("off", "b", "kvm1", manifest.PhaseStopped)
	d.server("broken", "c", "kvm1", manifest.PhaseFailed)
	d.server("busy", "d", "kvm1", manifest.PhaseUpdating)
	d.server("far", "e", "kvm2", manifest.PhaseRunning)
	d.server("gone", "f", "kvm3", manifest.PhaseUnknown)
	host := manifest.Record{APIVersion: manifest.APIVersion, Kind: manifest.KindHost, Spec: []byte("{}")}
	host.Metadata.Name = "kvm3"
	_, err := d.store.Create(t.Context(), host)
	require.NoError(t, err)
	_, err = d.store.DeclareLost(t.Context(), "kvm3", etcdstate.LostHost{})
	require.NoError(t, err)
	for name, one := range map[string]struct {
		servers []string
		labels  map[string]string
		class   errs.Class
		want    string
	}{
		"missing":           {[]string{"up", "nope"}, nil, errs.Permanent, "server/nope"},
		"stopped":           {[]string{"off"}, nil, errs.Permanent, "burrow start off"},
		"failed":            {[]string{"broken"}, nil, errs.Permanent, "server/broken is Failed"},
		"being changed":     {[]string{"busy"}, nil, errs.Transient, "it is waited for"},
		"on a lost host":    {[]string{"gone"}, nil, errs.Permanent, "host kvm3, which server/gone is on, was declared lost"},
		"on several hosts":  {[]string{"up", "far"}, nil, errs.Permanent, "one run is over servers of one host"},
		"nobody has labels": {nil, map[string]string{"role": "z"}, errs.Permanent, "no server has the labels"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := d.a.Targets(t.Context(), state.TargetsIn{Owner: "playbook/p", Targets: manifest.Targets{Servers: one.servers, Selector: one.labels}})
			require.ErrorContains(t, err, one.want)
			require.Equal(t, one.class, errs.ClassOf(err))
		})
	}
}
