package libvirtx

import (
	"context"
	"errors"
	"io"
	"sync"

	"libvirt.org/go/libvirt"

	"burrow.dev/burrow/internal/errs"
)

// consoleBuffer is how much of a guest's output is kept for a reader that is slow;
// beyond it nothing more is taken from libvirt until the reader has caught up.
const consoleBuffer = 256 << 10

// console is a guest's serial console as a byte stream. libvirt calls readable from its
// event loop; readers and writers wait on the condition.
//
//	guest ──▶ libvirtd ──▶ readable() ──▶ buf ──▶ Read
//	Write ──▶ stream.Send (non-blocking) ──▶ libvirtd ──▶ guest
type console struct {
	mu      sync.Mutex
	changed *sync.Cond
	stream  *libvirt.Stream
	events  libvirt.StreamEventType // what libvirt watches for now
	buf     []byte
	err     error // why no more can come; set once
	closed  bool
	done    chan struct{} // closed with closed
}

// Console opens the serial console of a running domain. ErrBusy when somebody else has
// it open. Close ends pending reads and writes.
func (c *Connection) Console(ctx context.Context, uuid string) (io.ReadWriteCloser, error) {
	cl := domainCall(uuid, "open console")
	t, err := doOn(ctx, c, cl, func(s *session, conn *libvirt.Connect) (*console, error) {
		d, err := conn.LookupDomainByUUIDString(uuid)
		if err != nil {
			return nil, err
		}
		defer d.Free()
		st, err := conn.NewStream(libvirt.STREAM_NONBLOCK)
		if err != nil {
			return nil, err
		}
		if err := d.OpenConsole("", st, libvirt.DOMAIN_CONSOLE_SAFE); err != nil {
			_ = st.Free()
			return nil, err
		}
		return newConsole(st, s.dead)
	})
	if err != nil {
		return nil, err
	}
	return t, nil
}

// newConsole takes st over. dead is closed when the connection is lost: libvirt tells
// its streams nothing then.
func newConsole(st *libvirt.Stream, dead <-chan struct{}) (*console, error) {
	t := &console{stream: st, events: libvirt.STREAM_EVENT_READABLE, done: make(chan struct{})}
	t.changed = sync.NewCond(&t.mu)
	if err := st.EventAddCallback(t.events, t.ready); err != nil {
		_ = st.Abort()
		_ = st.Free()
		return nil, err
	}
	go t.follow(dead)
	return t, nil
}

// follow ends the stream when the connection ends; it goes with Close.
func (t *console) follow(dead <-chan struct{}) {
	select {
	case <-dead:
		t.mu.Lock()
		if t.err == nil {
			t.err = io.EOF
		}
		t.changed.Broadcast()
		t.mu.Unlock()
	case <-t.done:
	}
}

// ready is libvirt's news about the stream; it runs in the event loop and never waits.
func (t *console) ready(_ *libvirt.Stream, events libvirt.StreamEventType) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return
	}
	if events&libvirt.STREAM_EVENT_READABLE != 0 {
		t.take()
	}
	if events&(libvirt.STREAM_EVENT_ERROR|libvirt.STREAM_EVENT_HANGUP) != 0 && t.err == nil {
		t.err = io.EOF
	}
	want := libvirt.StreamEventType(0)
	if len(t.buf) < consoleBuffer && t.err == nil {
		want = libvirt.STREAM_EVENT_READABLE
	}
	t.watch(want)
	t.changed.Broadcast()
}

// take reads what libvirt holds, up to the buffer's limit.
func (t *console) take() {
	chunk := make([]byte, 32<<10)
	for len(t.buf) < consoleBuffer {
		n, err := t.stream.Recv(chunk)
		switch {
		case err != nil:
			t.err = io.EOF // the guest is gone, or libvirtd is; there is nothing to tell apart
			return
		case n <= 0:
			return
		}
		t.buf = append(t.buf, chunk[:n]...)
	}
}

// watch changes what libvirt watches for; the callers hold the lock.
func (t *console) watch(events libvirt.StreamEventType) {
	if events != t.events && t.stream.EventUpdateCallback(events) == nil {
		t.events = events
	}
}

// Read waits for the guest's output. io.EOF when the domain has stopped or the
// connection is gone.
func (t *console) Read(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for len(t.buf) == 0 && t.err == nil && !t.closed {
		t.changed.Wait()
	}
	switch {
	case t.closed:
		return 0, io.ErrClosedPipe
	case len(t.buf) == 0:
		return 0, t.err
	}
	n := copy(p, t.buf)
	t.buf = t.buf[n:]
	if t.err == nil && len(t.buf) < consoleBuffer {
		t.watch(t.events | libvirt.STREAM_EVENT_READABLE)
	}
	return n, nil
}

// Write types p at the console.
func (t *console) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	sent := 0
	for sent < len(p) {
		if t.closed {
			return sent, io.ErrClosedPipe
		}
		if t.err != nil {
			return sent, t.err
		}
		n, err := t.stream.Send(p[sent:])
		if err != nil {
			return sent, errors.Join(errs.ErrUnavailable, err)
		}
		if n >= 0 {
			sent += n
			continue
		}
		t.watch(t.events | libvirt.STREAM_EVENT_WRITABLE)
		t.changed.Wait()
	}
	return sent, nil
}

// Close gives the console back; idempotent.
func (t *console) Close() error {
	t.mu.Lock()
	if t.closed {
		t.mu.Unlock()
		return nil
	}
	t.closed = true
	close(t.done)
	t.changed.Broadcast()
	t.mu.Unlock()
	_ = t.stream.EventRemoveCallback()
	_ = t.stream.Abort()
	return t.stream.Free()
}
