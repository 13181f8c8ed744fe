package etcdstate

import (
	"context"
	"strings"
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

// Health asks every endpoint. It fails only when no member answers.
func (s *Store) Health(ctx context.Context) (Health, error) {
	var out Health
	var last error
	alive := 0
	for _, endpoint := range s.client.Endpoints() {
		m := Member{Endpoint: endpoint}
		status, err := s.client.Status(ctx, endpoint)
		if err != nil {
			m.Err = Translate(ctx, "etcd "+endpoint, "ask status", err)
			last = m.Err
		} else {
			alive++
			m.Version, m.SizeBytes, m.InUseBytes, m.QuotaBytes = status.Version, status.DbSize, status.DbSizeInUse, status.DbSizeQuota
			m.Leader = status.Header.MemberId == status.Leader
		}
		out.Members = append(out.Members, m)
	}
	if alive == 0 {
		return out, last
	}
	alarms, err := s.client.AlarmList(ctx)
	if err != nil {
		return out, Translate(ctx, "etcd", "list alarms", err)
	}
	for _, alarm := range alarms.Alarms {
		out.Alarms = append(out.Alarms, strings.ToUpper(alarm.Alarm.String()))
	}
	return out, nil
}
