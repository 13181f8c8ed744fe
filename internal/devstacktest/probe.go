package devstacktest

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"
)

const (
	// probeTimeout bounds one question to one member, which may be stopped.
	probeTimeout = time.Second
	// probePause is between two questions.
	probePause = 20 * time.Millisecond
)

// Leader waits until a majority of members that answer agrees on a leader, and gives it.
func (c *EtcdCluster) Leader(ctx context.Context) int {
	c.t.Helper()
	for {
		if leader, ok := c.leader(ctx); ok {
			return leader
		}
		c.pause(ctx, "no majority agrees on a leader")
	}
}

// AwaitHealthy returns when all members that live serve linearizable reads.
func (c *EtcdCluster) AwaitHealthy(ctx context.Context) {
	c.t.Helper()
	for i := range c.members {
		for c.alive(i) && !c.serves(ctx, i) {
			c.pause(ctx, fmt.Sprintf("member %d does not serve", i))
		}
	}
}

// leader asks every member that lives whom it follows.
func (c *EtcdCluster) leader(ctx context.Context) (int, bool) {
	ids := make([]uint64, len(c.members))
	votes := map[uint64]int{}
	var mu sync.Mutex
	var group errgroup.Group
	for i := range c.members {
		if !c.alive(i) {
			continue
		}
		group.Go(func() error {
			return c.ask(ctx, i, func(ctx context.Context, client *clientv3.Client) error {
				status, err := client.Status(ctx, c.clients[i])
				if err != nil {
					return err
				}
				mu.Lock()
				defer mu.Unlock()
				ids[i] = status.Header.MemberId
				votes[status.Leader]++
				return nil
			})
		})
	}
	_ = group.Wait() // who does not answer has no vote
	for i, id := range ids {
		if id != 0 && votes[id] > len(c.members)/2 {
			return i, true
		}
	}
	return 0, false
}

func (c *EtcdCluster) serves(ctx context.Context, i int) bool {
	return c.ask(ctx, i, func(ctx context.Context, client *clientv3.Client) error {
		_, err := client.Get(ctx, "health")
		return err
	}) == nil
}

// ask calls fn with a client of one member only.
func (c *EtcdCluster) ask(ctx context.Context, i int, fn func(context.Context, *clientv3.Client) error) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{c.clients[i]}, TLS: c.tls, Logger: zap.NewNop()})
	if err != nil {
		return err
	}
	defer client.Close()
	return fn(ctx, client)
}

// pause waits a little, and fails the test when it has waited for too long.
func (c *EtcdCluster) pause(ctx context.Context, why string) {
	c.t.Helper()
	timer := time.NewTimer(probePause)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		require.FailNow(c.t, "etcd cluster: "+why, ctx.Err())
	}
}
