package etcdstate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/internal/keyring"
	"burrow.dev/burrow/manifest"
)

const (
	// holdersWait is how long a rotation waits until every worker has said that it has the
	// new key: the lease of one that died a moment ago has run out by then.
	holdersWait = 20 * time.Second
	// holdersPause is between two looks at who has it.
	holdersPause = 200 * time.Millisecond
	// unreadableNamed is how many secrets that cannot be read an error names.
	unreadableNamed = 5
)

// Rotate changes the master key: a new one is made beside the old one, every worker that
// lives has to have it, then it is switched to in one transaction, then every secret is
// encrypted again. say hears of each step.
//
// It may be killed anywhere and asked for again: before the switch nothing has changed and
// the key that was chosen is taken; after it, both keys are needed and the rest is done.
// Writers go on meanwhile: each write compares which key is in use. A worker without the
// new key (copied by hand to its machine) stops it before the switch: errs.ErrUnavailable,
// operator. Old key files are left: backups need them.
func (s *Secrets) Rotate(ctx context.Context, r keyring.Rotation, say func(keyring.Step)) error {
	if err := s.ring.Reload(ctx); err != nil {
		return err
	}
	state, err := s.readState(ctx)
	if err != nil {
		return err
	}
	resumed := false
	done, err := s.encryptAll(ctx, state, func(n int) {
		if !resumed {
			resumed = true
			say(keyring.Step{Phase: keyring.Resumes, KeyID: state.Current, Place: s.ring.Place(state.Current)})
		}
		say(keyring.Step{Phase: keyring.Encrypts, KeyID: state.Current, Done: n})
	})
	if err != nil {
		return err
	}
	if done > 0 {
		say(keyring.Step{Phase: keyring.Done, KeyID: state.Current, Place: s.ring.Place(state.Current), Done: done})
		return nil
	}
	if state, err = s.choose(ctx, state, r); err != nil {
		return err
	}
	next := state.Next.ID
	say(keyring.Step{Phase: keyring.Chosen, KeyID: next, Place: s.ring.Place(next)})
	if state, err = s.switchKey(ctx, state, r, say); err != nil {
		return err
	}
	say(keyring.Step{Phase: keyring.Switched, KeyID: next, Place: s.ring.Place(next)})
	done, err = s.encryptAll(ctx, state, func(n int) {
		say(keyring.Step{Phase: keyring.Encrypts, KeyID: next, Done: n})
	})
	if err != nil {
		return err
	}
	say(keyring.Step{Phase: keyring.Done, KeyID: next, Place: s.ring.Place(next), Done: done})
	return nil
}

// choose settles which key is next, and writes it: the one of a rotation that has begun;
// else one that this worker has and that was never in use; else a new one.
func (s *Secrets) choose(ctx context.Context, state *keyState, r keyring.Rotation) (*keyState, error) {
	if n := state.Next; n != nil {
		if _, have := s.ring.Key(n.ID); have {
			return state, nil
		}
		return nil, errs.NewOperator("master key "+n.ID, "switch to", fmt.Errorf("%w: this worker has it not; %s began with it on host %s, where it is %s",
			errs.ErrUnavailable, n.By, n.Host, n.Place), "copy it from there to "+s.ring.Place(n.ID)+" here, mode 0600, and run this again")
	}
	fresh := slices.DeleteFunc(s.ring.IDs(), func(id string) bool {
		return id == state.Current || slices.Contains(state.Retired, id)
	})
	var id string
	switch len(fresh) {
	case 0:
		made, _, err := s.ring.Make(ctx)
		if err != nil {
			return nil, err
		}
		id = made
	case 1:
		id = fresh[0]
	default:
		return nil, errs.NewOperator("master key", "choose the next", fmt.Errorf("%w: this worker has several that were never in use: %s",
			errs.ErrInvalid, sentence(fresh)), "take all but one of them away")
	}
	changed := *state
	changed.Next = &nextKey{ID: id, Place: s.ring.Place(id), Host: r.Host, By: r.By, At: time.Now().UTC().Truncate(time.Second)}
	return s.replaceState(ctx, state, &changed)
}

// switchKey makes the next key the current one, once every worker has it.
func (s *Secrets) switchKey(ctx context.Context, state *keyState, r keyring.Rotation, say func(keyring.Step)) (*keyState, error) {
	waiting, cancel := context.WithTimeout(ctx, holdersWait)
	defer cancel()
	next := state.Next.ID
	var told string
	for {
		all, rev, err := s.holders(ctx)
		if err != nil {
			return nil, err
		}
		missing := lacking(all, next)
		down, err := s.silent(ctx, all, r.Without)
		if err != nil {
			return nil, err
		}
		if len(missing)+len(down) == 0 {
			changed := *state
			changed.Current, changed.Next = next, nil
			changed.Retired = append(slices.Clone(state.Retired), state.Current)
			got, err := s.replaceState(ctx, state, &changed, NothingNewer(s.store.Key(holdersFolder, ""), rev))
			if !errors.Is(err, errWorkerCame) {
				return got, err
			}
		} else if names := sentence(append(slices.Clone(missing), down...)); names != told {
			told = names
			say(keyring.Step{Phase: keyring.Waits, KeyID: next, Place: s.ring.Place(next), Hosts: append(missing, down...)})
		}
		if wait(waiting, holdersPause) != nil {
			if ctx.Err() != nil {
				return nil, Translate(ctx, "master key "+next, "switch to", ctx.Err())
			}
			return nil, s.notEverywhere(next, missing, down)
		}
	}
}

// errWorkerCame: a worker came, or said something new, while its key was being switched.
var errWorkerCame = errors.New("a worker came")

// silent lists the hosts that have a record and no worker that says which keys it has.
func (s *Secrets) silent(ctx context.Context, all []keyHolder, without []string) ([]string, error) {
	hosts, err := s.store.List(ctx, manifest.KindHost)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, rec := range hosts {
		name := rec.Metadata.Name
		if !slices.Contains(without, name) && !slices.ContainsFunc(all, func(h keyHolder) bool { return h.Host == name }) {
			out = append(out, name)
		}
	}
	return out, nil
}

func (s *Secrets) notEverywhere(id string, missing, down []string) error {
	var what, next []string
	if len(missing) > 0 {
		what = append(what, "the workers of "+sentence(missing)+" have it not")
		next = append(next, "copy "+s.ring.Place(id)+" to the same path there, mode 0600")
	}
	if len(down) > 0 {
		what = append(what, "the workers of "+sentence(down)+" are down and cannot say")
		next = append(next, "start them, or copy it there and add --without "+strings.Join(down, ","))
	}
	return errs.NewOperator("master key "+id, "switch to", fmt.Errorf("%w: %s; nothing was changed", errs.ErrUnavailable, strings.Join(what, "; ")),
		strings.Join(next, "; ")+"; then run this again")
}

// replaceState writes a state over the one it was made from. cmps that fail give
// errWorkerCame; another state meanwhile is errs.ErrConflict.
func (s *Secrets) replaceState(ctx context.Context, from, to *keyState, cmps ...clientv3.Cmp) (*keyState, error) {
	key := s.stateKey()
	value, err := encode("master key", to)
	if err != nil {
		return nil, err
	}
	resp, err := s.store.client.Txn(ctx).If(append(cmps, from.unchanged(key))...).
		Then(clientv3.OpPut(key, value)).Else(clientv3.OpGet(key)).Commit()
	if err != nil {
		return nil, Translate(ctx, "master key", "write which is in use", err)
	}
	if resp.Succeeded {
		written := *to
		written.revision = resp.Header.Revision
		s.know(&written)
		return &written, nil
	}
	now, err := decodeState(resp.Responses[0].GetResponseRange().Kvs)
	if err != nil {
		return nil, err
	}
	s.know(now)
	if now != nil && now.revision == from.revision {
		return nil, errWorkerCame
	}
	return nil, errs.New(errs.Transient, "master key", "rotate", fmt.Errorf("%w: somebody else rotates it", errs.ErrConflict), "run this again when they are done")
}

// encryptAll brings every secret under the current key, and says how many it has changed so
// far after each. One that cannot be read is left, and named at the end.
func (s *Secrets) encryptAll(ctx context.Context, state *keyState, said func(int)) (int, error) {
	done, at := 0, *state
	var unreadable []string
	var cause error
	prefix := s.store.Key("secrets", "")
	// Whatever is written after this began compares the state, so it is under the current key.
	_, err := s.store.EachPage(ctx, prefix, func(kv *mvccpb.KeyValue) error {
		name := strings.TrimPrefix(string(kv.Key), prefix)
		changed, err := s.encryptAgain(ctx, &at, name, kv)
		var bad unreadableError
		if errors.As(err, &bad) {
			unreadable, cause = append(unreadable, name), bad.error
			return nil
		}
		if changed {
			done++
			said(done)
		}
		return err
	})
	if err != nil {
		return done, Translate(ctx, "secrets", "encrypt again", err)
	}
	if len(unreadable) > 0 {
		more := ""
		if n := len(unreadable) - unreadableNamed; n > 0 {
			more = fmt.Sprintf(" and %d more", n)
		}
		return done, errs.NewOperator("secrets", "encrypt again", fmt.Errorf("%d cannot be read: %s%s: %w", len(unreadable),
			sentence(unreadable[:min(len(unreadable), unreadableNamed)]), more, cause), nextRestore)
	}
	return done, nil
}

// unreadableError says why a secret cannot be had in clear, whoever asks.
type unreadableError struct{ error }

// Unwrap gives the reason.
func (e unreadableError) Unwrap() error { return e.error }

// encryptAgain brings one secret under the current key, unless it is or is gone. It brings
// state up to date. One that cannot be read is an unreadableError.
func (s *Secrets) encryptAgain(ctx context.Context, state *keyState, name string, kv *mvccpb.KeyValue) (changed bool, err error) {
	err = RetryConflict(ctx, "secret "+name, "encrypt again", func() (bool, error) {
		if kv == nil {
			return true, nil
		}
		box, err := unpack(name, kv)
		if err != nil {
			return false, unreadableError{err}
		}
		if box.KeyID == state.Current {
			return true, nil
		}
		value, err := s.open(ctx, name, kv)
		if errs.ClassOf(err) == errs.Operator {
			return false, unreadableError{err}
		}
		if err != nil {
			return false, err
		}
		data, err := s.seal(ctx, state.Current, name, value, box.Note)
		if err != nil {
			return false, err
		}
		resp, err := s.store.client.Txn(ctx).If(Unchanged(kv), state.unchanged(s.stateKey())).
			Then(clientv3.OpPut(string(kv.Key), data)).
			Else(clientv3.OpGet(string(kv.Key)), clientv3.OpGet(s.stateKey())).Commit()
		if err != nil {
			return false, Translate(ctx, "secret "+name, "encrypt again", err)
		}
		if resp.Succeeded {
			changed = true
			return true, nil
		}
		now, err := decodeState(resp.Responses[1].GetResponseRange().Kvs)
		if err != nil {
			return false, err
		}
		if now == nil || now.Current != state.Current {
			return false, errs.New(errs.Transient, "master key", "rotate", fmt.Errorf("%w: somebody else rotates it", errs.ErrConflict), "run this again when they are done")
		}
		state.revision = now.revision // a next key was chosen, which changes nothing here
		kv = nil
		if kvs := resp.Responses[0].GetResponseRange().Kvs; len(kvs) > 0 {
			kv = kvs[0]
		}
		return false, nil
	})
	return changed, err
}
