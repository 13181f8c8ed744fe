package etcdstate

import (
	"context"
	"crypto/tls"
	"net/url"
	"strings"
	"sync"
	"time"
)

// handshakeTimeout bounds the look at a member's certificate, on a network that is near.
const handshakeTimeout = 2 * time.Second

// Health is what `burrow doctor` shows of etcd.
type Health struct {
	Members []Member
	// Alarms as etcd names them: "NOSPACE", "CORRUPT". Any one stops writes.
	Alarms []string
}

// Member is one endpoint.
type Member struct {
	Endpoint string
	Version  string
	// SizeBytes is the file, InUseBytes what is not free in it, QuotaBytes the limit (0: not told).
	SizeBytes, InUseBytes, QuotaBytes int64
	Leader                            bool
	// Err is set when the member does not answer; all else is empty then.
	Err error
}

// Health asks every endpoint at the same time. It fails when no member answers, and when
// none can list the alarms, for lack of a quorum; it gives the members nevertheless.
func (s *Store) Health(ctx context.Context) (Health, error) {
	endpoints := s.client.Endpoints()
	out := Health{Members: make([]Member, len(endpoints))}
	var asking sync.WaitGroup
	for i, endpoint := range endpoints {
		asking.Go(func() { out.Members[i] = s.member(ctx, endpoint) })
	}
	alarms, err := s.client.AlarmList(ctx)
	asking.Wait()
	var last error
	alive := 0
	for _, m := range out.Members {
		if m.Err == nil {
			alive++
		} else {
			last = m.Err
		}
	}
	if alive == 0 && last != nil {
		return out, last
	}
	if err != nil {
		return out, Translate(ctx, "etcd", "list alarms", err)
	}
	for _, alarm := range alarms.Alarms {
		out.Alarms = append(out.Alarms, strings.ToUpper(alarm.Alarm.String()))
	}
	return out, nil
}

func (s *Store) member(ctx context.Context, endpoint string) Member {
	m := Member{Endpoint: endpoint}
	status, err := s.client.Status(ctx, endpoint)
	if err != nil {
		if refused := s.handshake(ctx, endpoint); refused != nil {
			err = refused // says more: a client that writes at once may miss why it was hung up on
		}
		m.Err = Translate(ctx, "etcd "+endpoint, "ask status", err)
		return m
	}
	m.Version, m.SizeBytes, m.InUseBytes, m.QuotaBytes = status.Version, status.DbSize, status.DbSizeInUse, status.DbSizeQuota
	m.Leader = status.Header.MemberId == status.Leader
	return m
}

// handshake says whether a member and we trust each other: nil when they do, when there is
// no TLS, and when nobody answers, which its caller knows already. With TLS 1.3 a server
// refuses a client after the client takes the connection for made, so one byte is read.
func (s *Store) handshake(ctx context.Context, endpoint string) error {
	at, err := url.Parse(endpoint)
	if err != nil || s.tls == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, handshakeTimeout)
	defer cancel()
	config := s.tls.Clone()
	config.NextProtos = []string{"h2"} // etcd greets who speaks HTTP/2
	dialer := tls.Dialer{Config: config}
	conn, err := dialer.DialContext(ctx, "tcp", at.Host)
	if err == nil {
		defer func() { _ = conn.Close() }()
		if err = conn.SetReadDeadline(time.Now().Add(handshakeTimeout)); err == nil {
			_, err = conn.Read(make([]byte, 1))
		}
	}
	if err != nil {
		if says, _ := distrust(err); says != "" {
			return err
		}
	}
	return nil
}
