package etcdstate

import (
	"context"
	"encoding/json"
	"runtime"
	"slices"
	"sync"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sync/errgroup"

	"burrow.dev/burrow/manifest"
)

// Summaries gives records with only what lists show, fast. It remembers what it has made,
// by key and ModRevision: a value never changes under its revision, so what is remembered
// cannot be stale, and each call asks etcd which revisions there are. 10,000 take about
// 10 MiB. Safe for concurrent use.
type Summaries struct {
	store *Store

	mu   sync.Mutex
	made map[manifest.Kind]made
}

// made are the summaries of a kind by key, as of a revision of etcd.
type made struct {
	revision int64
	byKey    map[string]summarized
}

type summarized struct {
	revision int64 // ModRevision of the record
	json     []byte
}

// NewSummaries makes an empty one.
func NewSummaries(s *Store) *Summaries { return &Summaries{store: s, made: map[manifest.Kind]made{}} }

// Each calls fn with the JSON of each record of a kind, by name, all at one revision; fn
// must not change it. The JSON is a manifest.Record with only: metadata without comment;
// of a server's spec cpu, memory and mmImage, of another's all; phase, message, operation,
// conditions, host, addresses, login, and what a kind has of its own.
func (c *Summaries) Each(ctx context.Context, kind manifest.Kind, fn func([]byte) error) error {
	folder, ok := folders[kind]
	if !ok || kind == manifest.KindHost { // few, and their phase is not in their record
		recs, err := c.store.List(ctx, kind)
		if err != nil {
			return err
		}
		for _, rec := range recs {
			encoded, err := json.Marshal(rec)
			if err == nil {
				err = fn(encoded)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
	object := folder
	var keys []string
	now := map[string]summarized{}
	c.mu.Lock()
	before := c.made[kind].byKey
	c.mu.Unlock()
	var missing []string
	rev, err := c.store.eachPage(ctx, c.store.Key(folder, ""), 0, keysPage, func(kv *mvccpb.KeyValue) error {
		key := string(kv.Key)
		keys = append(keys, key)
		if was, there := before[key]; there && was.revision == kv.ModRevision {
			now[key] = was
		} else {
			missing = append(missing, key)
		}
		return nil
	}, clientv3.WithKeysOnly())
	if err == nil {
		err = c.make(ctx, kind, missing, rev, now)
	}
	if err != nil {
		return Translate(ctx, object, "list records", err)
	}
	c.mu.Lock()
	if c.made[kind].revision < rev {
		c.made[kind] = made{rev, now}
	}
	c.mu.Unlock()
	for _, key := range keys {
		if err := fn(now[key].json); err != nil {
			return err
		}
	}
	return nil
}

// make reads records as they were at revision rev, and adds their summaries to out.
func (c *Summaries) make(ctx context.Context, kind manifest.Kind, keys []string, rev int64, out map[string]summarized) error {
	var mu sync.Mutex
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(2 * runtime.GOMAXPROCS(0)) // one reads while another decodes
	for chunk := range slices.Chunk(keys, MaxOps) {
		group.Go(func() error {
			kvs, err := c.store.readAt(ctx, chunk, rev)
			if err != nil {
				return err
			}
			for _, kv := range kvs {
				encoded, err := summarize(kind, kv)
				if err != nil {
					return err
				}
				mu.Lock()
				out[string(kv.Key)] = summarized{kv.ModRevision, encoded}
				mu.Unlock()
			}
			return nil
		})
	}
	return group.Wait()
}

// summary is the part of a manifest.Record that lists show.
type summary struct {
	APIVersion string          `json:"apiVersion"`
	Kind       manifest.Kind   `json:"kind"`
	Metadata   summaryMeta     `json:"metadata"`
	Spec       json.RawMessage `json:"spec"`
	Status     summaryStatus   `json:"status"`
}

type summaryMeta struct {
	Name            string            `json:"name"`
	Labels          map[string]string `json:"labels,omitempty"`
	UID             string            `json:"uid"`
	CreatedAt       json.RawMessage   `json:"createdAt,omitempty"` // a time, not worth parsing here
	ResourceVersion int64             `json:"resourceVersion,omitempty"`
}

type summarySpec struct {
	CPU    int    `json:"cpu,omitempty"`
	Memory int    `json:"memory,omitempty"`
	Image  string `json:"mmImage,omitempty"`
}

type summaryStatus struct {
	Phase      manifest.Phase          `json:"phase"`
	Message    string                  `json:"message,omitempty"`
	Operation  *manifest.Operation     `json:"operation,omitempty"`
	Conditions []manifest.Condition    `json:"conditions,omitempty"`
	Host       string                  `json:"host,omitempty"`
	Addresses  []string                `json:"addresses,omitempty"`
	Ports      []summaryPort           `json:"ports,omitempty"`
	Login      string                  `json:"login,omitempty"`
	RebootedAt json.RawMessage         `json:"rebootedAt,omitempty"` // as createdAt
	Network    *manifest.NetworkStatus `json:"network,omitempty"`
	Volume     *manifest.VolumeStatus  `json:"volume,omitempty"`
	Image      *manifest.ImageStatus   `json:"image,omitempty"`
	Targets    []string                `json:"targets,omitempty"`
	Playbook   *summaryPlaybook        `json:"playbook,omitempty"`
}

type summaryPlaybook struct {
	RunID string `json:"runId,omitempty"`
}

type summaryPort struct {
	Addresses []string `json:"addresses,omitempty"`
}

// summarize cuts a record to what lists show. What is not as burrow writes it, and can be
// read all the same, is given as it is; what cannot, as List has it.
func summarize(kind manifest.Kind, kv *mvccpb.KeyValue) ([]byte, error) {
	var s summary
	if json.Unmarshal(kv.Value, &s) != nil || isOf(kv, s.Kind, s.Metadata.Name) != nil {
		rec, err := decodeRecord(kv)
		if err != nil {
			rec = damaged(kind, kv, err)
		}
		return json.Marshal(rec)
	}
	s.Metadata.ResourceVersion = kv.ModRevision
	var spec summarySpec
	if s.Kind == manifest.KindServer && json.Unmarshal(s.Spec, &spec) == nil {
		s.Spec, _ = json.Marshal(spec)
	}
	return json.Marshal(s)
}
