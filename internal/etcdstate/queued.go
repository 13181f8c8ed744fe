package etcdstate

import (
	"context"
	"errors"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"

	"burrow.dev/burrow/internal/errs"
)

// queuePause is before the queue is read again when a watch of it broke at once.
const queuePause = 50 * time.Millisecond

// electionPatience is how long a place in the queue is kept while etcd does not say who is
// in front: an election takes 1 to 3 s, with slow disks or a split vote a few times that.
const electionPatience = 15 * time.Second

// queued is a place in a lock's queue: a key with the session's lease, in the order of
// creation. It is the queue of etcd's concurrency.Mutex, which watches from a revision
// that is past already: etcd serves such watches every 100 ms, at each change of holder.
type queued struct {
	client  *clientv3.Client
	session *concurrency.Session
	prefix  string
	key     string
	rev     int64 // of the key's creation; 0 while it may or may not be there
}

// wait joins the queue and returns when nobody is in front.
func (q *queued) wait(ctx context.Context) error {
	front, err := q.join(ctx)
	for err == nil && front != "" {
		front, err = q.await(ctx, front)
	}
	return err
}

// join puts the key into the queue and gives who is in front; "" is nobody.
func (q *queued) join(ctx context.Context) (front string, err error) {
	lease := q.session.Lease()
	q.key = fmt.Sprintf("%s%x", q.prefix, lease)
	last := clientv3.OpGet(q.prefix, clientv3.WithLastCreate()...)
	// The key is there when the client has repeated a request whose answer was lost.
	resp, err := q.client.Txn(ctx).If(Absent(q.key)).
		Then(last, clientv3.OpPut(q.key, "", clientv3.WithLease(lease))).
		Else(clientv3.OpGet(q.key)).Commit()
	if err != nil {
		return "", err
	}
	there := resp.Responses[0].GetResponseRange().Kvs
	if !resp.Succeeded {
		q.rev = there[0].CreateRevision
		return q.front(ctx)
	}
	q.rev = resp.Header.Revision
	if len(there) > 0 {
		front = string(there[0].Key)
	}
	return front, nil
}

// front gives who is in front now. While there is no leader it asks again: to give up the
// place is to give up the session, and with it the places of others of this process. Our
// own key or the session gone: concurrency.ErrSessionExpired.
func (q *queued) front(ctx context.Context) (string, error) {
	for until := time.Now().Add(electionPatience); ; {
		front, err := q.ask(ctx)
		switch {
		case err == nil || errors.Is(err, concurrency.ErrSessionExpired):
			return front, err
		case ended(q.session):
			return "", concurrency.ErrSessionExpired
		case time.Now().After(until) || !errors.Is(Translate(ctx, q.key, "read", err), errs.ErrUnavailable):
			return "", err
		}
		if err := wait(ctx, queuePause); err != nil {
			return "", err
		}
	}
}

// ask is one try of front.
func (q *queued) ask(ctx context.Context) (string, error) {
	last := clientv3.OpGet(q.prefix, append(clientv3.WithLastCreate(), clientv3.WithMaxCreateRev(q.rev-1))...)
	resp, err := q.client.Txn(ctx).If(clientv3.Compare(clientv3.CreateRevision(q.key), "=", q.rev)).Then(last).Commit()
	switch {
	case err != nil:
		return "", err
	case !resp.Succeeded:
		return "", concurrency.ErrSessionExpired
	}
	if kvs := resp.Responses[0].GetResponseRange().Kvs; len(kvs) > 0 {
		return string(kvs[0].Key), nil
	}
	return "", nil
}

// await waits until the one in front is gone, and gives who is in front then. The watch
// begins now, whenever that is in etcd's count, so it is looked again after it began.
func (q *queued) await(ctx context.Context, front string) (string, error) {
	watching, cancel := context.WithCancel(clientv3.WithRequireLeader(ctx))
	defer cancel()
	events := q.client.Watch(watching, front, clientv3.WithFilterPut(), clientv3.WithCreatedNotify())
	began := false
	for {
		select {
		case resp, ok := <-events:
			if !ok || resp.Err() != nil { // lost; reading says whether etcd is there
				if err := wait(ctx, queuePause); err != nil {
					return "", err
				}
				return q.front(ctx)
			}
			if began && len(resp.Events) == 0 {
				continue
			}
			began = true
			now, err := q.front(ctx)
			if err != nil || now != front {
				return now, err
			}
		case <-q.session.Done():
			return "", concurrency.ErrSessionExpired
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
}

// takeBack leaves the queue, and tells whether that is certain.
func (q *queued) takeBack(ctx context.Context) bool {
	if q.rev == 0 || ended(q.session) {
		return false
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), unlockTimeout)
	defer cancel()
	_, err := q.client.Delete(ctx, q.key)
	return err == nil
}
