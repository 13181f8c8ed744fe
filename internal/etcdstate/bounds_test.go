package etcdstate

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"burrow.dev/burrow/internal/capacity"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/manifest"
)

func TestARecordCanBeSettledWhateverItsOperationHasToSay(t *testing.T) {
	s := newTestStore(t)
	rec := server("db", "db")
	rec.Spec = []byte(`{"x":"` + strings.Repeat("x", manifest.MaxSpecBytes-8) + `"}`)
	_, err := s.Create(t.Context(), rec)
	require.NoError(t, err)
	recap := map[string]manifest.Recap{}
	for i := range 5000 {
		recap[fmt.Sprintf("host-%04d", i)] = manifest.Recap{OK: 10}
	}
	recap["zz-failed"] = manifest.Recap{Failed: 1}
	got, err := s.Update(t.Context(), manifest.KindServer, "db", func(r *manifest.Record) error {
		r.Status.Message = "server/db: run playbook: " + strings.Repeat("ä", 1<<20) + "; correct it, then: burrow retry db"
		r.Status.Conditions = []manifest.Condition{{Type: manifest.ConditionAttention, Status: true, Message: strings.Repeat("y", 1<<20)}}
		r.Status.Playbook = &manifest.PlaybookStatus{Recap: recap}
		return nil
	})
	require.NoError(t, err)
	stored, err := s.Get(t.Context(), manifest.KindServer, "db")
	require.NoError(t, err)
	require.Equal(t, stored, got, "what is given is what is stored")
	require.True(t, strings.HasPrefix(stored.Status.Message, "server/db: run playbook: ä"))
	require.True(t, strings.HasSuffix(stored.Status.Message, "ä; correct it, then: burrow retry db"))
	require.NotContains(t, stored.Status.Message, "\ufffd")
	require.LessOrEqual(t, len(stored.Status.Message), maxMessage)
	require.Contains(t, stored.Status.Playbook.Recap, "zz-failed", "what failed is kept")
	require.Len(t, stored.Status.Playbook.Recap, maxRecap)
	require.Len(t, recap, 5001, "the caller's is not touched")
	requireSmall(t, s)
}

// requireSmall checks every value in etcd.
func requireSmall(t *testing.T, s *Store) {
	t.Helper()
	resp, err := s.client.Get(t.Context(), s.prefix, clientv3.WithPrefix())
	require.NoError(t, err)
	for _, kv := range resp.Kvs {
		require.Less(t, len(kv.Value), MaxValue, "%s", kv.Key)
	}
}

func TestNoWriterStoresAValueThatIsTooLarge(t *testing.T) {
	s := newTestStore(t)
	ctx := t.Context()
	huge := strings.Repeat("x", MaxValue)
	require.NoError(t, func() error { _, err := s.Create(ctx, server("db", "db")); return err }())
	terms, _ := campaign(t, s, "a")
	term := won(t, terms)
	secrets := openSecrets(t, s, 1)
	require.NoError(t, s.RegisterHost(ctx, "kvm1", nil, capacity.Spec{CPU: 4, MemoryMiB: 4096}))
	rec, err := s.Get(ctx, manifest.KindServer, "db")
	require.NoError(t, err)
	large := rec
	large.Status.Seed = huge

	for name, write := range map[string]func() error{
		"create": func() error { r := large; r.Metadata.Name = "other"; _, err := s.Create(ctx, r); return err },
		"update": func() error {
			_, err := s.Update(ctx, manifest.KindServer, "db", func(r *manifest.Record) error { r.Status.Seed = huge; return nil })
			return err
		},
		"a leader's":  func() error { _, err := term.ReplaceOfLost(ctx, "kvm1", large); return err },
		"a host's":    func() error { _, err := s.ReplaceOfLiving(ctx, "kvm1", large); return err },
		"host record": func() error { return s.RegisterHost(ctx, "kvm2", map[string]string{"a": huge}, capacity.Spec{}) },
		"secret":      func() error { return secrets.Put(ctx, "s", []byte(huge)) },
		"secret once": func() error { _, err := secrets.PutIfAbsent(ctx, "s2", []byte(huge)); return err },
		"claim":       func() error { return s.Claim(ctx, huge, "server/db") },
		"reservation": func() error {
			_, err := s.Reserve(ctx, "uid", capacity.Reservation{Owner: huge}, func([]capacity.Host) (string, error) { return "kvm1", nil })
			return err
		},
		"name": func() error { _, err := s.OwnOne(ctx, "macs", huge, "m1"); return err },
	} {
		t.Run(name, func(t *testing.T) {
			err := write()
			require.ErrorIs(t, err, errs.ErrInvalid)
			require.Equal(t, errs.Permanent, errs.ClassOf(err))
			require.Less(t, len(err.Error()), 2*MaxValue)
		})
	}
	requireSmall(t, s)
}
