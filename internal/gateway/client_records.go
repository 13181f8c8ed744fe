package gateway

import (
	"context"

	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/internal/gateway/gatewaypb"
	"burrow.dev/burrow/manifest"
)

// Get gives one record; errs.ErrNotFound when there is none.
func (c *Client) Get(ctx context.Context, kind manifest.Kind, name string) (manifest.Record, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	encoded, err := c.rpc.GetRecord(ctx, &gatewaypb.GetRecordRequest{Kind: string(kind), Name: name})
	if err != nil {
		return manifest.Record{}, c.failed(err, "read a record")
	}
	return decodeRecord(encoded)
}

// List gives the records of a kind, by name.
func (c *Client) List(ctx context.Context, kind manifest.Kind) ([]manifest.Record, error) {
	var records []manifest.Record
	err := c.Each(ctx, kind, func(rec manifest.Record) error { records = append(records, rec); return nil })
	return records, err
}

// Each calls fn with the records of a kind, by name, as they come; it returns fn's error.
func (c *Client) Each(ctx context.Context, kind manifest.Kind, fn func(manifest.Record) error) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	stream, err := c.rpc.ListRecords(ctx, &gatewaypb.ListRecordsRequest{Kind: string(kind)})
	if err != nil {
		return c.failed(err, "list records")
	}
	return receive(stream, c.failing("list records"), func(encoded *gatewaypb.Record) error {
		rec, err := decodeRecord(encoded)
		if err != nil {
			return err
		}
		return fn(rec)
	})
}

// EachSummary calls fn with the records of a kind, by name, each with only what lists
// show: metadata without comment; of a server's spec cpu, memory and mmImage; phase,
// message, operation, conditions, host, addresses and login. It holds few at a time, and
// returns fn's error.
func (c *Client) EachSummary(ctx context.Context, kind manifest.Kind, fn func(manifest.Record) error) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	stream, err := c.rpc.ListSummaries(ctx, &gatewaypb.ListRecordsRequest{Kind: string(kind)})
	if err != nil {
		return c.failed(err, "list records")
	}
	return receive(stream, c.failing("list records"), func(batch *gatewaypb.RecordBatch) error {
		for _, encoded := range batch.GetJson() {
			rec, err := decodeRecord(&gatewaypb.Record{Json: encoded})
			if err != nil {
				return err
			}
			if err := fn(rec); err != nil {
				return err
			}
		}
		return nil
	})
}

// Watch calls fn with the records there are, Synced, then with changes, until fn gives an
// error (which it returns), ctx ends (its error), or the gateway is lost
// (errs.ErrUnavailable). Kind or name "" is all. A slow fn gets the latest state of each
// record, not every one between.
func (c *Client) Watch(ctx context.Context, kind manifest.Kind, name string, fn func(Event) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := c.rpc.WatchRecords(ctx, &gatewaypb.WatchRecordsRequest{Kind: string(kind), Name: name})
	if err != nil {
		return c.failed(err, "watch records")
	}
	err = receive(stream, c.failingUnless(ctx, "watch records"), func(encoded *gatewaypb.RecordEvent) error {
		event, err := decodeEvent(encoded)
		if err != nil {
			return err
		}
		return fn(event)
	})
	if err != nil {
		return err
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return errs.NewTransient(c.object, "watch records", errs.Reason("%w: the gateway ended the watch", errs.ErrUnavailable))
}

func decodeEvent(encoded *gatewaypb.RecordEvent) (Event, error) {
	switch encoded.GetType() {
	case gatewaypb.RecordEvent_TYPE_SYNCED:
		return Event{Type: Synced}, nil
	case gatewaypb.RecordEvent_TYPE_DELETE:
		rec, err := decodeRecord(encoded.GetRecord())
		return Event{Type: Delete, Record: rec}, err
	case gatewaypb.RecordEvent_TYPE_PUT:
		rec, err := decodeRecord(encoded.GetRecord())
		return Event{Type: Put, Record: rec}, err
	}
	return Event{}, errs.NewPermanent("event", "decode", errs.Reason("%w: type %v", errs.ErrInvalid, encoded.GetType()),
		"use the same version of burrow as the worker")
}
