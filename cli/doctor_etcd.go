package cli

import (
	"fmt"
	"slices"
	"strings"

	"burrow.dev/burrow/internal/gateway"
)

const (
	// defaultQuota is etcd's own limit where a member does not tell it.
	defaultQuota = 2 << 30
	// fullWarn and fullFail are shares of the quota, in percent: at the whole of it, etcd
	// stops every write.
	fullWarn = 60
	fullFail = 90
)

// stateStoreVerdict judges etcd by what the worker was told.
func stateStoreVerdict(found gateway.StateStoreHealth, err error) []check {
	if err != nil {
		return []check{judged("etcd", checkFail, err, "")}
	}
	checks := []check{membersVerdict(found), sizeVerdict(found), leaderVerdict(found)}
	if len(found.WithoutMasterKey) > 0 {
		checks = append(checks, check{
			Name: "master key", Level: checkFail,
			Detail: fmt.Sprintf("%s has not the one in use, %s: nothing encrypted can be read there", strings.Join(found.WithoutMasterKey, ", "), found.MasterKey),
			Next:   "copy that key from where it is (docs/security.md) beside master.key there; do not rotate before",
		})
	}
	return checks
}

func membersVerdict(found gateway.StateStoreHealth) check {
	k := check{Name: "etcd", Level: checkOK}
	var silent, versions []string
	leader := ""
	for _, m := range found.Members {
		switch {
		case m.Error != "":
			silent = append(silent, m.Endpoint)
			k.Next = fmt.Sprintf("look at etcd there: %s", m.Error)
		case m.Leader:
			leader = m.Endpoint
			fallthrough
		default:
			versions = append(versions, m.Version)
		}
	}
	k.Detail = fmt.Sprintf("%d of %d members answer, version %s", len(versions), len(found.Members), strings.Join(slices.Compact(slices.Sorted(slices.Values(versions))), " and "))
	if leader != "" && len(found.Members) > 1 {
		k.Detail += ", " + leader + " leads"
	}
	if len(silent) > 0 {
		k.Level = checkWarn
		k.Detail += "; silent: " + strings.Join(silent, ", ")
		if 2*len(versions) <= len(found.Members) {
			k.Level = checkFail
			k.Detail += "; without more than half nothing can be written"
		}
	}
	if len(found.Alarms) > 0 {
		k.Level = checkFail
		k.Detail = "alarm " + strings.Join(found.Alarms, ", ") + ": nothing can be written; " + k.Detail
		k.Next = "NOSPACE: `etcdctl defrag`, or a larger --quota-backend-bytes, then `etcdctl alarm disarm`; CORRUPT: replace that member by a new one"
	}
	return k
}

// sizeVerdict judges the fullest member.
func sizeVerdict(found gateway.StateStoreHealth) check {
	k := check{Name: "etcd size", Level: checkOK, Detail: "not told"}
	fullest := int64(-1)
	for _, m := range found.Members {
		if m.Error != "" {
			continue
		}
		quota := m.Quota
		if quota == 0 {
			quota = defaultQuota
		}
		share := m.Size * 100 / quota
		if share <= fullest {
			continue
		}
		fullest = share
		k.Level, k.Next = checkOK, ""
		k.Detail = fmt.Sprintf("%s of %s (%d %%), %s in use", size(m.Size), size(quota), share, size(m.InUse))
		if share < fullWarn {
			continue
		}
		k.Level = checkWarn
		if share >= fullFail {
			k.Level = checkFail
		}
		k.Next = "periodic compaction must be on (--auto-compaction-retention), then free what is not in use: etcdctl defrag; or raise --quota-backend-bytes"
	}
	return k
}

func leaderVerdict(found gateway.StateStoreHealth) check {
	if found.Leader == "" {
		return check{
			Name: "leader", Level: checkWarn, Detail: "no control worker leads: hosts that vanish go unnoticed",
			Next: "start a control worker: burrow worker --roles control; after one died, another leads within seconds",
		}
	}
	return check{Name: "leader", Level: checkOK, Detail: "control worker " + found.Leader}
}

// size is bytes for people.
func size(n int64) string {
	if n < 1<<30 {
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
}
