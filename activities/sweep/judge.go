package sweep

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/internal/etcdstate"
)

// Judge remembers what was seen and says what a sweep does about it. Operations are looked
// at here, after the leftovers and the records.
func (a *Control) Judge(ctx context.Context, in JudgeIn) (JudgeOut, error) {
	if err := checkRemove(in.Remove); err != nil {
		return JudgeOut{}, err
	}
	now := time.Now().UTC()
	if err := a.store.ForgetDeleted(ctx, now); err != nil {
		return JudgeOut{}, err
	}
	before, err := a.sight(ctx, in, now)
	if err != nil {
		return JudgeOut{}, err
	}
	owing, err := a.store.Owing(ctx)
	if err != nil {
		return JudgeOut{}, err
	}
	j := judgement{in: in, now: now, bodies: bodiesOf(in.Findings), owing: owing}
	for i := range in.Findings {
		f := &in.Findings[i]
		first, seen := before[f.ID]
		if f.Since = first; !seen {
			f.Since = now
		}
		if f.Verdict == VerdictNote {
			continue
		}
		busy := false
		if ref := f.Ref; ref != "" && strings.Contains(ref, "/") {
			if busy, err = a.open(ctx, ref); err != nil {
				return JudgeOut{}, err
			}
		}
		j.judge(f, seen, busy)
	}
	return JudgeOut{Findings: in.Findings}, nil
}

// sight writes down what is seen now and gives what was seen before. What is not seen any
// more is forgotten, except on hosts that were not looked at.
func (a *Control) sight(ctx context.Context, in JudgeIn, now time.Time) (etcdstate.Sightings, error) {
	before := etcdstate.Sightings{}
	_, err := a.store.Sight(ctx, func(seen etcdstate.Sightings) etcdstate.Sightings {
		clear(before)
		next := etcdstate.Sightings{}
		for id, first := range seen {
			before[id] = first
			if host, _, _ := strings.Cut(id, "/"); slices.Contains(in.Away, host) {
				next[id] = first
			}
		}
		for _, f := range in.Findings {
			next[f.ID] = now.Truncate(time.Second)
			if first, ok := seen[f.ID]; ok {
				next[f.ID] = first
			}
		}
		return next
	})
	return before, err
}

// bodiesOf are the owners of whom a guest or a disk was found.
func bodiesOf(all []Finding) []string {
	var out []string
	for _, f := range all {
		if f.Thing == ThingDomain || f.Thing == ThingVolume {
			out = append(out, f.UID)
		}
	}
	return out
}

// judgement decides on findings.
type judgement struct {
	in     JudgeIn
	now    time.Time
	bodies []string
	owing  map[string]string // the lost host that owes something of a uid
}

func (j judgement) judge(f *Finding, seen, busy bool) {
	match := func(uid string) bool { return owns(uid, f.UID) }
	grace := time.Duration(j.in.GraceSeconds) * time.Second
	asked := slices.ContainsFunc(j.in.Remove, match)
	switch {
	case f.Kept != "" && f.Thing != ThingClaim:
		f.Verdict, f.Next = VerdictWait, f.Kept
	case busy:
		f.Verdict, f.Next = VerdictWait, "an operation is open on "+f.Ref+"; nothing is done meanwhile"
	case j.owing[f.UID] != "" && !asked:
		f.Verdict = VerdictWait
		f.Next = "kept while host " + j.owing[f.UID] + " is lost: its guest may still run there. If that machine is destroyed: `burrow sweep --remove " + short(f.UID) + "`"
	case f.Thing != ThingClaim && !f.Deleted && !asked && slices.ContainsFunc(j.bodies, match):
		f.Verdict = VerdictAsk
		f.Next = "burrow does not know that it was deleted, and keeps it: `burrow sweep --remove " + short(f.UID) + "` removes it for good"
	case f.Thing != ThingClaim && !f.Deleted && !asked && len(j.in.Away) > 0:
		f.Verdict, f.Next = VerdictWait, "kept while "+strings.Join(j.in.Away, ", ")+" is away: its guest may be there"
	case asked && seen:
		f.Verdict, f.Next = VerdictRemove, "removed by request"
	case !seen || j.now.Sub(f.Since) < grace:
		f.Verdict = VerdictWait
		f.Next = fmt.Sprintf("removed by a sweep that sees it again after %s", f.Since.Add(grace).Format("15:04:05 MST"))
	default:
		f.Verdict, f.Next = VerdictRemove, "removed by a sweep"
	}
}

// checkRemove refuses what cannot be an owner.
func checkRemove(words []string) error {
	for _, w := range words {
		if len(w) < shortLength {
			return errs.NewPermanent("sweep", "remove "+w, errors.New("that is not an owner's uid"), "name at least its first 8 digits, as `burrow drift` shows them")
		}
	}
	return nil
}
