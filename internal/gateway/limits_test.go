package gateway

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"burrow.dev/burrow/internal/config"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/internal/gateway/gatewaypb"
	"burrow.dev/burrow/manifest"
)

func TestAHugeMessageIsRefusedAndTheGatewayLivesOn(t *testing.T) {
	c := connect(t, serve(t, deps(t, &store{})))
	_, err := c.rpc.GetRecord(t.Context(), &gatewaypb.GetRecordRequest{Kind: "Server", Name: strings.Repeat("x", 2*maxMessage)})
	require.Equal(t, codes.ResourceExhausted, status.Code(err))
	_, err = c.Get(t.Context(), manifest.KindServer, "db")
	require.ErrorIs(t, err, errs.ErrNotFound)
}

func TestMoreStreamsThanTheLimitAreRefusedUntilSomeEnd(t *testing.T) {
	dir, err := os.MkdirTemp("", "gw")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	cfg := config.Gateway{Socket: filepath.Join(dir, "s")}
	s := NewServer(deps(t, &store{}))
	s.streams = make(chan struct{}, 2)
	ctx, cancel := context.WithCancel(t.Context())
	var serving sync.WaitGroup
	serving.Go(func() { _ = s.Serve(ctx, cfg) })
	t.Cleanup(func() { cancel(); serving.Wait() })
	var c *Client
	require.Eventually(t, func() bool { c, err = Dial(t.Context(), cfg); return err == nil }, soon, 5*time.Millisecond)
	t.Cleanup(func() { _ = c.Close() })

	watching, end := context.WithCancel(t.Context())
	var watches sync.WaitGroup
	synced := make(chan struct{}, 2)
	for range 2 {
		watches.Go(func() {
			_ = c.Watch(watching, "", "", func(Event) error { synced <- struct{}{}; return nil })
		})
	}
	<-synced
	<-synced
	err = c.Watch(t.Context(), "", "", func(Event) error { return io.EOF })
	require.ErrorContains(t, err, "this gateway has 2 streams open, which is the most it takes")
	require.NoError(t, func() error { _, err := c.rpc.Info(t.Context(), &gatewaypb.InfoRequest{}); return err }(), "calls still work")

	end()
	watches.Wait()
	require.Eventually(t, func() bool {
		return c.Watch(t.Context(), "", "", func(Event) error { return io.EOF }) == io.EOF
	}, soon, 5*time.Millisecond)
}

func TestALongErrorStillArrives(t *testing.T) {
	err := fromStatus(toStatus(errs.NewOperator("server/db", "run playbook", errs.Reason("%w: %s", errs.ErrNoSpace, strings.Repeat("x", 1<<20)), "free space")), "", "")
	require.ErrorIs(t, err, errs.ErrNoSpace)
	require.Equal(t, errs.Operator, errs.ClassOf(err))
	require.ErrorContains(t, err, "free space")
	require.Less(t, len(err.Error()), 3*maxDetail)
}

// slow is a store whose listings wait for their end.
type slow struct {
	*store
	begun chan struct{}
	end   chan struct{}
}

func (s slow) Each(ctx context.Context, kind manifest.Kind, fn func(manifest.Record) error) error {
	s.begun <- struct{}{}
	select {
	case <-s.end:
	case <-ctx.Done():
	}
	return s.store.Each(ctx, kind, fn)
}

// Each listing holds a page of records for as long as its reader takes.
func TestOnlySoManyListingsAreReadAtOnce(t *testing.T) {
	records := slow{&store{}, make(chan struct{}, maxListings+2), make(chan struct{})}
	d := deps(t, records.store)
	d.Records = records
	c := connect(t, serve(t, d))
	var listings sync.WaitGroup
	for range maxListings {
		listings.Go(func() {
			if _, err := c.List(t.Context(), manifest.KindServer); err != nil {
				t.Error(err)
			}
		})
	}
	for range maxListings {
		<-records.begun
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err := c.List(ctx, manifest.KindServer)
	waited := len(records.begun) == 0
	close(records.end)
	listings.Wait()
	require.Error(t, err)
	require.True(t, waited, "it waits for its turn")
	_, err = c.List(t.Context(), manifest.KindServer)
	require.NoError(t, err)
}
