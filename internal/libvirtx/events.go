package libvirtx

import (
	"context"
	"sync"
	"time"

	"libvirt.org/go/libvirt"
)

// reconnectEvery is how often a lost event connection is tried again: a restart of
// libvirtd takes about a second.
const reconnectEvery = time.Second

// EventType says what happened to a domain.
type EventType string

// Events. Connected comes first and after each reconnection: states may have changed
// unseen, so the receiver reads them all again.
const (
	EventConnected EventType = "connected"
	EventDefined   EventType = "defined"
	EventUndefined EventType = "undefined"
	EventStarted   EventType = "started"
	EventSuspended EventType = "suspended" // Detail "ioerror": the guest waits for its disk
	EventResumed   EventType = "resumed"
	EventStopped   EventType = "stopped" // Detail "shutdown", "destroyed", "crashed", "failed"
	EventShutdown  EventType = "shutdown"
	EventCrashed   EventType = "crashed"
	EventRebooted  EventType = "rebooted"
)

// DomainEvent is one piece of news. Name and UUID are empty for EventConnected.
type DomainEvent struct {
	Type   EventType
	Name   string
	UUID   string
	Detail string
}

// Events tells what happens to domains until ctx ends, when the channel is closed. It
// survives restarts of libvirtd. Nothing is lost to a slow receiver: news queue up.
func (c *Connection) Events(ctx context.Context) <-chan DomainEvent {
	q := &eventQueue{wake: make(chan struct{}, 1)}
	out := make(chan DomainEvent)
	var wg sync.WaitGroup
	wg.Add(2)
	go func() { defer wg.Done(); c.subscribe(ctx, q) }()
	go func() { defer wg.Done(); q.deliver(ctx, out) }()
	go func() { wg.Wait(); close(out) }()
	return out
}

// subscribe keeps the callbacks registered on whatever connection lives.
func (c *Connection) subscribe(ctx context.Context, q *eventQueue) {
	retry := time.NewTicker(reconnectEvery)
	defer retry.Stop()
	for ctx.Err() == nil {
		if s, conn, err := c.acquire(ctx); err == nil && c.watch(ctx, s, conn, q) {
			continue
		}
		select {
		case <-retry.C:
		case <-ctx.Done():
		}
	}
}

// watch registers on one connection, and returns when it or ctx has ended; false when
// libvirtd did not take the callbacks, which a new connection may not mend at once. A
// libvirt call may hang here while libvirtd does; keepalive ends it.
func (c *Connection) watch(ctx context.Context, s *session, conn *libvirt.Connect, q *eventQueue) (registered bool) {
	ids, err := register(conn, q)
	if err != nil {
		c.log.Warn("cannot subscribe to domain events", "err", err)
		s.end()
	} else {
		q.push(DomainEvent{Type: EventConnected})
	}
	select {
	case <-s.dead:
	case <-ctx.Done():
	}
	for _, id := range ids {
		_ = conn.DomainEventDeregister(id)
	}
	_, _ = conn.Close()
	return err == nil
}

func register(conn *libvirt.Connect, q *eventQueue) ([]int, error) {
	var ids []int
	id, err := conn.DomainEventLifecycleRegister(nil, func(_ *libvirt.Connect, d *libvirt.Domain, e *libvirt.DomainEventLifecycle) {
		if t, detail := lifecycle(e); t != "" {
			q.push(about(d, t, detail))
		}
	})
	if err != nil {
		return ids, err
	}
	ids = append(ids, id)
	id, err = conn.DomainEventRebootRegister(nil, func(_ *libvirt.Connect, d *libvirt.Domain) {
		q.push(about(d, EventRebooted, ""))
	})
	if err != nil {
		return ids, err
	}
	return append(ids, id), nil
}

// about names the domain of an event; the binding frees d after the callback.
func about(d *libvirt.Domain, t EventType, detail string) DomainEvent {
	name, _ := d.GetName()
	uuid, _ := d.GetUUIDString()
	return DomainEvent{Type: t, Name: name, UUID: uuid, Detail: detail}
}

// lifecycle translates an event; "" for what nobody acts on.
func lifecycle(e *libvirt.DomainEventLifecycle) (EventType, string) {
	switch e.Event {
	case libvirt.DOMAIN_EVENT_DEFINED:
		return EventDefined, ""
	case libvirt.DOMAIN_EVENT_UNDEFINED:
		return EventUndefined, ""
	case libvirt.DOMAIN_EVENT_STARTED:
		return EventStarted, ""
	case libvirt.DOMAIN_EVENT_RESUMED:
		return EventResumed, ""
	case libvirt.DOMAIN_EVENT_SHUTDOWN:
		return EventShutdown, ""
	case libvirt.DOMAIN_EVENT_CRASHED:
		return EventCrashed, ""
	case libvirt.DOMAIN_EVENT_SUSPENDED:
		if libvirt.DomainEventSuspendedDetailType(e.Detail) == libvirt.DOMAIN_EVENT_SUSPENDED_IOERROR {
			return EventSuspended, "ioerror"
		}
		return EventSuspended, ""
	case libvirt.DOMAIN_EVENT_STOPPED:
		return EventStopped, stoppedDetail(libvirt.DomainEventStoppedDetailType(e.Detail))
	}
	return "", ""
}

func stoppedDetail(d libvirt.DomainEventStoppedDetailType) string {
	switch d {
	case libvirt.DOMAIN_EVENT_STOPPED_SHUTDOWN:
		return "shutdown"
	case libvirt.DOMAIN_EVENT_STOPPED_DESTROYED:
		return "destroyed"
	case libvirt.DOMAIN_EVENT_STOPPED_CRASHED:
		return "crashed"
	case libvirt.DOMAIN_EVENT_STOPPED_FAILED:
		return "failed"
	}
	return ""
}

// eventQueue stands between libvirt's event loop, which must never wait, and the receiver.
type eventQueue struct {
	mu   sync.Mutex
	news []DomainEvent
	wake chan struct{} // 1 deep
}

func (q *eventQueue) push(e DomainEvent) {
	q.mu.Lock()
	q.news = append(q.news, e)
	q.mu.Unlock()
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

func (q *eventQueue) drain() []DomainEvent {
	q.mu.Lock()
	defer q.mu.Unlock()
	news := q.news
	q.news = nil
	return news
}

func (q *eventQueue) deliver(ctx context.Context, out chan<- DomainEvent) {
	for {
		for _, e := range q.drain() {
			select {
			case out <- e:
			case <-ctx.Done():
				return
			}
		}
		select {
		case <-q.wake:
		case <-ctx.Done():
			return
		}
	}
}
