package sweep

import (
	"context"
	"slices"
	"strings"

	"burrow.dev/burrow/internal/etcdstate"
	"burrow.dev/burrow/manifest"
)

// Records is what of the records in etcd both sides need.
type Records interface {
	List(ctx context.Context, kind manifest.Kind) ([]manifest.Record, error)
	Deleted(ctx context.Context) (map[string]etcdstate.Deleted, error)
}

// ownerKinds are the kinds whose uid may own something, and whose operations can be lost.
var ownerKinds = []manifest.Kind{manifest.KindServer, manifest.KindNetwork, manifest.KindVolume, manifest.KindImage, manifest.KindPlaybook}

// owners is who there is, read after what they may have left was listed.
type owners struct {
	records map[string]manifest.Record // by uid
	deleted map[string]etcdstate.Deleted
	hosts   map[string]bool
	names   map[string]string // refs of those who are gone, where something else tells
	// damaged are records that cannot be read. Nobody knows their uids, so whatever has no
	// known owner may be theirs.
	damaged []manifest.Record
}

// readOwners reads the records, then what is deleted: a uid that is deleted in between is
// in both, and one that was deleted before is in the second.
func readOwners(ctx context.Context, store Records) (owners, error) {
	o := owners{records: map[string]manifest.Record{}, hosts: map[string]bool{}, names: map[string]string{}}
	for _, kind := range ownerKinds {
		recs, err := store.List(ctx, kind)
		if err != nil {
			return o, err
		}
		for _, rec := range recs {
			if rec.Status.Phase == manifest.PhaseDamaged {
				o.damaged = append(o.damaged, rec)
				continue
			}
			o.records[rec.Metadata.UID] = rec
		}
	}
	hosts, err := store.List(ctx, manifest.KindHost)
	if err != nil {
		return o, err
	}
	for _, h := range hosts {
		o.hosts[h.Metadata.Name] = true
	}
	o.deleted, err = store.Deleted(ctx)
	return o, err
}

// lives reports whether a uid may still own something. The record of a build that failed
// and was undone stays, and owns nothing.
func (o owners) lives(uid string) bool {
	rec, ok := o.records[uid]
	if !ok {
		return false
	}
	_, gone := o.deleted[uid]
	return !gone || rec.Status.Phase != manifest.PhaseFailed
}

// keeps says why nothing without a known owner is removed now; "" when it may be.
func (o owners) keeps() string {
	if len(o.damaged) == 0 {
		return ""
	}
	var refs []string
	for _, rec := range o.damaged {
		refs = append(refs, manifest.Ref(rec.Kind, rec.Metadata.Name))
	}
	return "kept while the record of " + some(refs) + " cannot be read: it may belong to it"
}

// unreadable are the findings about records that cannot be read.
func (o owners) unreadable() []Finding {
	var all []Finding
	for _, rec := range o.damaged {
		ref := manifest.Ref(rec.Kind, rec.Metadata.Name)
		all = append(all, Finding{
			ID: "record/" + ref, Thing: ThingRecord, Ref: ref, Object: ref, Problem: "its record cannot be read: " + cutText(rec.Status.Message),
			Verdict: VerdictNote, Next: "nothing by itself: bring it back by `burrow restore` or etcdctl; until then no leftover is removed",
		})
	}
	return all
}

// ref names the owner as users do; "" when nobody knows.
func (o owners) ref(uid string) string {
	if rec, ok := o.records[uid]; ok {
		return manifest.Ref(rec.Kind, rec.Metadata.Name)
	}
	if d, ok := o.deleted[uid]; ok {
		return manifest.Ref(d.Kind, d.Name)
	}
	return o.names[uid]
}

// orphan completes a finding about a thing whose owner is gone.
func (o owners) orphan(f Finding) Finding {
	_, f.Deleted = o.deleted[f.UID]
	if f.Ref == "" {
		f.Ref = o.ref(f.UID)
	}
	f.Kept = o.keeps()
	if f.Problem == "" {
		f.Problem = "left behind: its record is missing"
		switch {
		case f.Deleted && f.Ref != "":
			f.Problem = "left behind by " + f.Ref + ", which is gone"
		case f.Ref != "":
			f.Problem = "left behind: the record of " + f.Ref + " is missing"
		}
	}
	return f
}

// noteOf is a finding about a record that is not as it should be; a sweep changes nothing by it.
func noteOf(rec manifest.Record, id, host, problem, next string) Finding {
	ref := manifest.Ref(rec.Kind, rec.Metadata.Name)
	return Finding{
		ID: id, Thing: ThingRecord, Host: host, UID: rec.Metadata.UID, Ref: ref, Object: ref,
		Problem: problem, Verdict: VerdictNote, Next: next,
	}
}

// stillSo keeps the notes about records that have not changed since they were read: an
// operation that began or ended in between explains what was seen.
func stillSo(ctx context.Context, store Records, before owners, notes []Finding) ([]Finding, error) {
	if len(notes) == 0 {
		return nil, nil
	}
	now, err := readOwners(ctx, store)
	return slices.DeleteFunc(notes, func(f Finding) bool {
		rec, ok := now.records[f.UID]
		return !ok || rec.Metadata.ResourceVersion != before.records[f.UID].Metadata.ResourceVersion
	}), err
}

// short is the part of a uid that stands in names.
func short(uid string) string { return uid[:min(len(uid), shortLength)] }

// shortLength is how much of a uid stands in a volume's name.
const shortLength = 8

// owns reports whether two uids, of which one may be shortened, are the same.
func owns(a, b string) bool {
	return a != "" && b != "" && (strings.HasPrefix(a, b) || strings.HasPrefix(b, a))
}

// bounded cuts the findings to what one answer may carry.
func bounded(all []Finding) LookOut {
	if len(all) <= FindingsMost {
		return LookOut{Findings: all}
	}
	return LookOut{Findings: all[:FindingsMost], More: len(all) - FindingsMost}
}
