package etcdstate

import (
	"context"
	"strings"
	"sync"
)

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
		m.Err = Translate(ctx, "etcd "+endpoint, "ask status", err)
		return m
	}
	m.Version, m.SizeBytes, m.InUseBytes, m.QuotaBytes = status.Version, status.DbSize, status.DbSizeInUse, status.DbSizeQuota
	m.Leader = status.Header.MemberId == status.Leader
	return m
}
