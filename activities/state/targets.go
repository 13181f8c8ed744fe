package state

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"burrow.dev/burrow/activities"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/manifest"
)

// Targets finds the servers of a Playbook, as they are now. See TargetsOut for what is refused.
func (a *Activities) Targets(ctx context.Context, in TargetsIn) (TargetsOut, error) {
	lost, err := a.store.LostNames(ctx)
	if err != nil {
		return TargetsOut{}, err
	}
	out := TargetsOut{}
	found := map[string]bool{}
	err = a.store.Each(ctx, manifest.KindServer, func(rec manifest.Record) error {
		if !in.Targets.Matches(rec.Metadata.Name, rec.Metadata.Labels) {
			return nil
		}
		found[rec.Metadata.Name] = true
		if len(found) > MaxTargets {
			return refuseTargets(in, errs.Reason("it is for more than %d servers", MaxTargets), "part it into several Playbooks")
		}
		if host := rec.Status.Host; slices.Contains(lost, host) {
			return refuseTargets(in, errs.Reason("host %s, which %s is on, was declared lost", host, manifest.Ref(manifest.KindServer, rec.Metadata.Name)),
				"bring the host back, or take the server off spec.targets")
		}
		t, err := targetOf(in, rec)
		if err != nil {
			return err
		}
		if len(out.Servers) > 0 && out.Servers[0].Host != t.Host {
			return refuseTargets(in, errs.Reason("server/%s is on host %s, and server/%s is on %s: one run is over servers of one host",
				t.Server.Name, t.Host, out.Servers[0].Server.Name, out.Servers[0].Host), "write one Playbook for each host")
		}
		out.Servers = append(out.Servers, t)
		return nil
	})
	if err != nil {
		return TargetsOut{}, err
	}
	for _, name := range in.Targets.Servers {
		if !found[name] {
			return TargetsOut{}, refuseTargets(in, fmt.Errorf("server/%s: %w", name, errs.ErrNotFound), "apply it first, or take it off spec.targets")
		}
	}
	if len(out.Servers) == 0 {
		return TargetsOut{}, refuseTargets(in, errs.Reason("no server has the labels of spec.targets.selector"), "`burrow get servers -o wide` shows labels")
	}
	slices.SortFunc(out.Servers, func(a, b Target) int { return strings.Compare(a.Server.Name, b.Server.Name) })
	return out, nil
}

// targetOf is a server that a run can reach.
func targetOf(in TargetsIn, rec manifest.Record) (Target, error) {
	ref := manifest.Ref(manifest.KindServer, rec.Metadata.Name)
	switch phase := rec.Status.Phase; {
	case phase == manifest.PhaseRunning:
	case phase == manifest.PhaseStopped:
		return Target{}, refuseTargets(in, errs.Reason("%s is Stopped", ref), "`burrow start "+rec.Metadata.Name+"`, then apply again")
	case phase.Settled() && phase != manifest.PhaseUnknown:
		return Target{}, refuseTargets(in, errs.Reason("%s is %s", ref, phase), "mend or delete it (`burrow describe "+ref+"`), then apply again")
	default:
		return Target{}, errs.NewTransient(in.Owner, "find its servers", errs.Reason("%s is %s; it is waited for", ref, phase))
	}
	var spec manifest.ServerSpec
	if err := json.Unmarshal(rec.Spec, &spec); err != nil {
		return Target{}, errs.NewPermanent(ref, "read its record", err, "restore the record from a backup")
	}
	s := rec.Status
	return Target{
		Server: activities.Server{Name: rec.Metadata.Name, UID: rec.Metadata.UID}, Identity: manifest.TargetIdentity(rec),
		Host: s.Host, Login: s.Login, HostKeys: s.HostKeys, Ports: s.Ports, Labels: rec.Metadata.Labels, Image: spec.Image,
	}, nil
}

func refuseTargets(in TargetsIn, cause error, next string) error {
	return errs.NewPermanent(in.Owner, "find its servers", cause, next)
}
