package cli

import (
	"bytes"
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/internal/gateway"
)

func TestTheDoctorJudgesEtcd(t *testing.T) {
	member := func(change func(*gateway.StateStoreMember)) gateway.StateStoreMember {
		m := gateway.StateStoreMember{Endpoint: "https://e1:2379", Version: "3.7.3", Size: 100 << 20, InUse: 40 << 20, Quota: 8 << 30}
		if change != nil {
			change(&m)
		}
		return m
	}
	fine := member(func(m *gateway.StateStoreMember) { m.Leader = true })
	silent := gateway.StateStoreMember{Endpoint: "https://e9:2379", Error: "connection refused"}
	for name, c := range map[string]struct {
		found                gateway.StateStoreHealth
		members, size, leads verdictLevel
		says                 string
	}{
		"well": {gateway.StateStoreHealth{Members: []gateway.StateStoreMember{fine}, Leader: "kvm1/7"}, checkOK, checkOK, checkOK, "1 of 1 members answer, version 3.7.3"},
		"one of three is silent": {
			gateway.StateStoreHealth{Members: []gateway.StateStoreMember{fine, member(nil), silent}, Leader: "kvm1/7"},
			checkWarn, checkOK, checkOK, "2 of 3 members answer, version 3.7.3, https://e1:2379 leads; silent: https://e9:2379",
		},
		"two of three are silent": {
			gateway.StateStoreHealth{Members: []gateway.StateStoreMember{fine, silent, silent}, Leader: "kvm1/7"},
			checkFail, checkOK, checkOK, "nothing can be written",
		},
		"an alarm": {
			gateway.StateStoreHealth{Members: []gateway.StateStoreMember{fine}, Alarms: []string{"NOSPACE"}, Leader: "kvm1/7"},
			checkFail, checkOK, checkOK, "alarm NOSPACE: nothing can be written",
		},
		"the fullest member counts": {
			gateway.StateStoreHealth{Members: []gateway.StateStoreMember{fine, member(func(m *gateway.StateStoreMember) { m.Size = 6 << 30 })}, Leader: "kvm1/7"},
			checkOK, checkWarn, checkOK, "6.0 GiB of 8.0 GiB (75 %), 40.0 MiB in use",
		},
		"nearly full, by etcd's own quota": {
			gateway.StateStoreHealth{Members: []gateway.StateStoreMember{member(func(m *gateway.StateStoreMember) { m.Size, m.Quota = 2000<<20, 0 })}},
			checkOK, checkFail, checkWarn, "no control worker leads",
		},
	} {
		t.Run(name, func(t *testing.T) {
			checks := stateStoreVerdict(c.found, nil)
			require.Equal(t, []verdictLevel{c.members, c.size, c.leads}, []verdictLevel{checks[0].Level, checks[1].Level, checks[2].Level})
			require.Contains(t, checks[0].Detail+"\n"+checks[1].Detail+"\n"+checks[2].Detail, c.says)
			for _, k := range checks {
				require.Equal(t, k.Level == checkOK, k.Next == "", "%s: what is wrong has its mend", k.Name)
			}
		})
	}
}

// stateStore is an etcd as a test would have it.
type stateStore struct {
	found gateway.StateStoreHealth
	err   error
}

func (s stateStore) StateStore(context.Context) (gateway.StateStoreHealth, error) {
	return s.found, s.err
}

func TestTheDoctorAsksTheGatewayForEtcd(t *testing.T) {
	for name, c := range map[string]struct {
		store stateStore
		says  string
	}{
		"well": {stateStore{found: gateway.StateStoreHealth{
			Members: []gateway.StateStoreMember{{Endpoint: "e1", Version: "3.7.3", Size: 1 << 20, InUse: 1 << 19, Quota: 8 << 30, Leader: true}}, Leader: "kvm1/7",
		}}, `(?m)^ok +etcd +1 of 1 members answer, version 3\.7\.3\nok +etcd size +1\.0 MiB of 8\.0 GiB \(0 %\), 0\.5 MiB in use\nok +leader +control worker kvm1/7$`},
		"a worker without the master key": {stateStore{found: gateway.StateStoreHealth{
			Members: []gateway.StateStoreMember{{Endpoint: "e1", Version: "3.7.3", Quota: 8 << 30}}, Leader: "kvm1/7", MasterKey: "ab12", WithoutMasterKey: []string{"kvm2"},
		}}, `(?m)^fail +master key +kvm2 has not the one in use, ab12`},
		"away": {stateStore{err: errs.NewTransient("etcd", "ask status", errs.ErrUnavailable)}, `(?m)^fail +etcd +.*unavailable`},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.deps.StateStore = c.store
			w.start()
			var out, errOut bytes.Buffer
			w.burrow(t.Context(), nil, &out, &errOut, "doctor")
			require.Regexp(t, c.says, out.String())
		})
	}
}
