package etcdstate

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"burrow.dev/burrow/internal/errs"
)

// holdersFolder has a leased key for each worker that lives: keyholders/<host>/<lease>.
const holdersFolder = "keyholders"

// announceEvery is how soon a worker knows of a key that was put beside its own, and says
// so: a rotation waits for it.
const announceEvery = time.Second

// keyHolder says which master keys a worker has.
type keyHolder struct {
	Host string   `json:"host"`
	Keys []string `json:"keys"`
}

// Announce says in etcd which master keys this worker has, for as long as it lives, and
// takes up new ones. It returns when ctx ends, with nil.
func (s *Secrets) Announce(ctx context.Context, host string) error {
	for ctx.Err() == nil {
		err := s.announce(ctx, host)
		if ctx.Err() != nil {
			break
		}
		s.store.log.Warn("which master keys this worker has is said again", "host", host, "error", err)
		if wait(ctx, watchPause) != nil {
			break
		}
	}
	return nil
}

func (s *Secrets) announce(ctx context.Context, host string) error {
	client := s.store.client
	lease, giveBack, err := s.store.lease(ctx, "master keys of "+host, s.store.alive)
	if err != nil {
		return err
	}
	defer giveBack()
	beats, err := client.KeepAlive(ctx, lease)
	if err != nil {
		return Translate(ctx, "master keys of "+host, "keep lease", err)
	}
	tick := time.NewTicker(announceEvery)
	defer tick.Stop()
	key := s.store.Key(holdersFolder, host, fmt.Sprintf("%x", int64(lease)))
	var said []string
	for {
		if ids := s.ring.IDs(); !slices.Equal(ids, said) {
			value, err := encode("master keys of "+host, keyHolder{Host: host, Keys: ids})
			if err != nil {
				return err
			}
			if _, err := client.Put(ctx, key, value, clientv3.WithLease(lease)); err != nil {
				return Translate(ctx, "master keys of "+host, "say", err)
			}
			said = ids
		}
		for waiting := true; waiting; {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case _, ok := <-beats:
				if !ok {
					return fmt.Errorf("lease %x ended", int64(lease))
				}
			case <-tick.C:
				waiting = false
			}
		}
		s.lookAgain(ctx)
	}
}

// lookAgain reads the keys of this worker again, those of a command only when one is
// missing that is in use or will be.
func (s *Secrets) lookAgain(ctx context.Context) {
	state, err := s.readState(ctx)
	if err != nil {
		return // whoever needs a key is told
	}
	wanted := state.Current
	if state.Next != nil && state.Next.ID != "" {
		if _, have := s.ring.Key(wanted); have {
			wanted = state.Next.ID
		}
	}
	if err := s.ring.Look(ctx, wanted); err != nil && ctx.Err() == nil {
		s.store.log.Warn("master keys are not read again", "error", err)
	}
}

// holders lists the workers that live, and the revision this was read at.
func (s *Secrets) holders(ctx context.Context) ([]keyHolder, int64, error) {
	var out []keyHolder
	rev, err := s.store.EachPage(ctx, s.store.Key(holdersFolder, ""), func(kv *mvccpb.KeyValue) error {
		var h keyHolder
		if err := json.Unmarshal(kv.Value, &h); err != nil {
			return errs.NewOperator(string(kv.Key), "decode", err, "delete the key")
		}
		out = append(out, h)
		return nil
	})
	return out, rev, Translate(ctx, "master keys", "ask who has them", err)
}

// Lacking names the master key in use, and the hosts whose living worker has it not:
// nothing that was encrypted can be read there.
func (s *Secrets) Lacking(ctx context.Context) (key string, hosts []string, err error) {
	state, err := s.readState(ctx)
	if err != nil {
		return "", nil, err
	}
	all, _, err := s.holders(ctx)
	return state.Current, lacking(all, state.Current), err
}

// lacking lists the hosts that have a worker without a key.
func lacking(all []keyHolder, id string) []string {
	var hosts []string
	for _, h := range all {
		if !slices.Contains(h.Keys, id) && !slices.Contains(hosts, h.Host) {
			hosts = append(hosts, h.Host)
		}
	}
	return hosts
}

func sentence(names []string) string { return strings.Join(names, ", ") }
