package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"sync"

	"google.golang.org/grpc"

	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/internal/gateway/gatewaypb"
	"burrow.dev/burrow/manifest"
)

// GetRecord implements the service.
func (s *Server) GetRecord(ctx context.Context, req *gatewaypb.GetRecordRequest) (*gatewaypb.Record, error) {
	rec, err := record(ctx, s.deps.Records, manifest.Kind(req.GetKind()), req.GetName())
	if err != nil {
		return nil, err
	}
	return encodeRecord(rec)
}

// record reads one record; that there is none is said in the words of who asked for it.
func record(ctx context.Context, from Records, kind manifest.Kind, name string) (manifest.Record, error) {
	rec, err := from.Get(ctx, kind, name)
	if errors.Is(err, errs.ErrNotFound) {
		return rec, errs.NewPermanent(manifest.Ref(kind, name), "look up", errs.ErrNotFound, "`burrow get "+kind.Word()+"` lists what there is")
	}
	return rec, err
}

// ListRecords implements the service.
func (s *Server) ListRecords(req *gatewaypb.ListRecordsRequest, stream grpc.ServerStreamingServer[gatewaypb.Record]) error {
	select {
	case s.listings <- struct{}{}:
		defer func() { <-s.listings }()
	case <-stream.Context().Done():
		return stream.Context().Err()
	}
	return s.deps.Records.Each(stream.Context(), manifest.Kind(req.GetKind()), func(rec manifest.Record) error {
		encoded, err := encodeRecord(rec)
		if err != nil {
			return err
		}
		return stream.Send(encoded)
	})
}

// ListSummaries implements the service.
func (s *Server) ListSummaries(req *gatewaypb.ListRecordsRequest, stream grpc.ServerStreamingServer[gatewaypb.RecordBatch]) error {
	batch, size := &gatewaypb.RecordBatch{}, 0
	send := func() error {
		if size == 0 {
			return nil
		}
		err := stream.Send(batch)
		batch, size = &gatewaypb.RecordBatch{}, 0
		return err
	}
	err := s.deps.Records.EachSummary(stream.Context(), manifest.Kind(req.GetKind()), func(encoded []byte) error {
		batch.Json = append(batch.Json, encoded)
		if size += len(encoded); size < chunkSize {
			return nil
		}
		return send()
	})
	if err != nil {
		return err
	}
	return send()
}

// WatchRecords implements the service.
func (s *Server) WatchRecords(req *gatewaypb.WatchRecordsRequest, stream grpc.ServerStreamingServer[gatewaypb.RecordEvent]) error {
	ctx, cancel := context.WithCancel(stream.Context())
	events, err := s.deps.Records.Watch(ctx, manifest.Kind(req.GetKind()))
	if err != nil {
		cancel()
		return err
	}
	pending := newBacklog()
	var collecting sync.WaitGroup
	collecting.Go(func() {
		defer pending.close()
		for event := range events {
			if name := req.GetName(); name != "" && event.Type != Synced && event.Record.Metadata.Name != name {
				continue
			}
			if err := pending.add(event); err != nil {
				s.log.Error("record left out of a watch", "record", event.Record.Metadata.Name, "error", err)
			}
		}
	})
	defer collecting.Wait()
	defer cancel()
	for {
		encoded, ok := pending.next(ctx)
		if !ok {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return errs.NewTransient("records", "watch", errs.Reason("%w: the watch in etcd ended", errs.ErrUnavailable))
		}
		if err := stream.Send(encoded); err != nil {
			return err
		}
	}
}

// backlog holds what a slow reader has not had: at most one event for each record, the
// latest, at the place of the first, encoded. Adding never waits for the reader.
type backlog struct {
	mu     sync.Mutex
	order  []string
	latest map[string]*gatewaypb.RecordEvent
	closed bool
	wake   chan struct{} // holds a token while there is news
}

func newBacklog() *backlog {
	return &backlog{latest: map[string]*gatewaypb.RecordEvent{}, wake: make(chan struct{}, 1)}
}

func (b *backlog) add(e Event) error {
	encoded, err := encodeEvent(e)
	if err != nil {
		return err
	}
	key := string(e.Type)
	if e.Type != Synced {
		key = string(e.Record.Kind) + "/" + e.Record.Metadata.Name
	}
	b.mu.Lock()
	if _, waiting := b.latest[key]; !waiting {
		b.order = append(b.order, key)
	}
	b.latest[key] = encoded
	b.mu.Unlock()
	b.signal()
	return nil
}

func (b *backlog) close() {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	b.signal()
}

func (b *backlog) signal() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// next waits for an event; false when the backlog is closed and empty, or ctx ended.
func (b *backlog) next(ctx context.Context) (*gatewaypb.RecordEvent, bool) {
	for {
		b.mu.Lock()
		if len(b.order) > 0 {
			key := b.order[0]
			b.order = b.order[1:]
			event := b.latest[key]
			delete(b.latest, key)
			b.mu.Unlock()
			return event, true
		}
		closed := b.closed
		b.mu.Unlock()
		if closed {
			return nil, false
		}
		select {
		case <-b.wake:
		case <-ctx.Done():
			return nil, false
		}
	}
}

func encodeRecord(rec manifest.Record) (*gatewaypb.Record, error) {
	encoded, err := json.Marshal(rec)
	if err != nil {
		return nil, errs.NewPermanent("record "+rec.Metadata.Name, "encode", err, "")
	}
	return &gatewaypb.Record{Json: encoded}, nil
}

func decodeRecord(encoded *gatewaypb.Record) (manifest.Record, error) {
	var rec manifest.Record
	if err := json.Unmarshal(encoded.GetJson(), &rec); err != nil {
		return rec, errs.NewPermanent("record", "decode", err, "use the same version of burrow as the worker")
	}
	return rec, nil
}

func encodeEvent(e Event) (*gatewaypb.RecordEvent, error) {
	switch e.Type {
	case Synced:
		return &gatewaypb.RecordEvent{Type: gatewaypb.RecordEvent_TYPE_SYNCED}, nil
	case Put, Delete:
		rec, err := encodeRecord(e.Record)
		t := gatewaypb.RecordEvent_TYPE_PUT
		if e.Type == Delete {
			t = gatewaypb.RecordEvent_TYPE_DELETE
		}
		return &gatewaypb.RecordEvent{Type: t, Record: rec}, err
	}
	return nil, errs.NewPermanent("event", "encode", errs.Reason("%w: type %q", errs.ErrInvalid, e.Type), "")
}
