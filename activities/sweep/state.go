package sweep

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"burrow.dev/burrow/internal/addrspace"
	"burrow.dev/burrow/internal/etcdstate"
	"burrow.dev/burrow/internal/etcdstate/addresses"
	"burrow.dev/burrow/internal/sshkeys"
	"burrow.dev/burrow/manifest"
)

const (
	macFolder = "macs"
	// shownMost is how many names a finding that sums up several gives.
	shownMost = 4
)

// holdings is what etcd holds beside the records.
type holdings struct {
	addresses    []addresses.Owned
	pools        []addrspace.Entry
	macs         map[string]string
	reservations []etcdstate.Reserved
	references   []etcdstate.Reference
	claims       []etcdstate.Claimed
	keys         []string // uids
}

// LookState lists what etcd holds for nobody: first all that is held, then the records,
// then (for claims) the operations.
func (a *Control) LookState(ctx context.Context, _ LookIn) (LookOut, error) {
	held, err := a.holdings(ctx)
	if err != nil {
		return LookOut{}, err
	}
	who, err := readOwners(ctx, a.store)
	if err != nil {
		return LookOut{}, err
	}
	for _, r := range held.reservations {
		who.names[r.UID] = r.Owner
	}
	all := who.unreadable()
	all = append(all, who.addresses(held)...)
	all = append(all, who.macs(held)...)
	all = append(all, who.reservations(held)...)
	all = append(all, who.keys(held)...)
	all = append(all, who.attachments()...)
	all = append(all, who.references(held)...)
	missing, err := a.missing(ctx, who)
	if err != nil {
		return LookOut{}, err
	}
	all = append(all, missing...)
	claims, err := a.claims(ctx, held.claims)
	return bounded(append(all, claims...)), err
}

func (a *Control) holdings(ctx context.Context) (h holdings, err error) {
	if err = a.pools.EachOwner(ctx, func(o addresses.Owned) error {
		if o.ServerUID() != addrspace.GatewayOwner {
			h.addresses = append(h.addresses, o)
		}
		return nil
	}); err != nil {
		return h, err
	}
	if h.pools, err = a.pools.Networks(ctx); err != nil {
		return h, err
	}
	if h.macs, err = a.store.Owners(ctx, macFolder); err != nil {
		return h, err
	}
	if h.reservations, err = a.store.Reservations(ctx); err != nil {
		return h, err
	}
	if h.references, err = a.store.AllReferences(ctx); err != nil {
		return h, err
	}
	if h.claims, err = a.store.Claims(ctx); err != nil {
		return h, err
	}
	names, err := a.secrets.List(ctx)
	for _, name := range names {
		if uid, ok := strings.CutPrefix(name, sshkeys.SecretName("")); ok {
			h.keys = append(h.keys, uid)
		}
	}
	return h, err
}

// addresses are grouped by network and owner; a whole pool of a network without a record
// is one finding.
func (o owners) addresses(h holdings) []Finding {
	networks := map[string]string{}
	var all []Finding
	for _, p := range h.pools {
		networks[p.UID] = manifest.Ref(manifest.KindNetwork, p.Name)
		if !o.lives(p.UID) {
			all = append(all, o.orphan(Finding{
				ID: "pool/" + p.UID, Thing: ThingPool, UID: p.UID, Name: p.Name, Ref: networks[p.UID],
				Object: "addresses of " + networks[p.UID],
			}))
		}
	}
	type key struct{ network, uid string }
	groups := map[key][]string{}
	for _, a := range h.addresses {
		if uid := a.ServerUID(); !o.lives(uid) {
			k := key{a.NetworkUID, uid}
			groups[k] = append(groups[k], a.Prefix.Addr().String())
		}
	}
	for k, addrs := range groups {
		network := networks[k.network]
		if network == "" {
			network = "network " + k.network
		}
		all = append(all, o.orphan(Finding{
			ID: "address/" + k.network + "/" + k.uid, Thing: ThingAddress, UID: k.uid, Name: k.network,
			Object: "address " + some(addrs) + " of " + network,
		}))
	}
	return sorted(all)
}

func (o owners) macs(h holdings) []Finding {
	byUID := map[string][]string{}
	for mac, owner := range h.macs {
		uid, _, _ := strings.Cut(owner, "/")
		if !o.lives(uid) {
			byUID[uid] = append(byUID[uid], mac)
		}
	}
	var all []Finding
	for uid, macs := range byUID {
		all = append(all, o.orphan(Finding{ID: "mac/" + uid, Thing: ThingMAC, UID: uid, Object: "MAC address " + some(macs)}))
	}
	return sorted(all)
}

func (o owners) reservations(h holdings) []Finding {
	var all []Finding
	for _, r := range h.reservations {
		if !o.lives(r.UID) {
			all = append(all, o.orphan(Finding{
				ID: "reservation/" + r.UID, Thing: ThingReservation, UID: r.UID, Host: r.Host, Ref: r.Owner,
				Object: "reservation of " + r.Owner + " on " + r.Host,
			}))
		}
	}
	return all
}

func (o owners) keys(h holdings) []Finding {
	var all []Finding
	for _, uid := range h.keys {
		if !o.lives(uid) {
			all = append(all, o.orphan(Finding{ID: "keys/" + uid, Thing: ThingKeys, UID: uid, Object: "login and host keys of server uid " + uid}))
		}
	}
	return all
}

// attachments are volumes that say they belong to a server that is gone.
func (o owners) attachments() []Finding {
	var all []Finding
	for _, rec := range o.records {
		v := rec.Status.Volume
		if v == nil || v.AttachedUID == "" || o.lives(v.AttachedUID) {
			continue
		}
		all = append(all, o.orphan(Finding{
			ID: "attachment/" + rec.Metadata.UID + "/" + v.AttachedUID, Thing: ThingAttachment, UID: v.AttachedUID, Name: rec.Metadata.Name,
			Ref: v.AttachedTo, Object: "volume/" + rec.Metadata.Name, Problem: "attached to " + v.AttachedTo + ", which is gone",
		}))
	}
	return sorted(all)
}

// references to networks on hosts that are known are their hosts' to look at: there they
// go together with what stands for them.
func (o owners) references(h holdings) []Finding {
	var all []Finding
	for _, r := range h.references {
		if !o.lives(r.Owner) && !o.hosts[r.Host] {
			all = append(all, o.orphan(Finding{
				ID: "reference/" + r.NetworkUID + "/" + r.Host + "/" + r.Owner, Thing: ThingReference, UID: r.Owner, Host: r.Host, Name: r.NetworkUID,
				Object: "use of " + o.network(r.NetworkUID) + " on " + r.Host,
			}))
		}
	}
	return all
}

// missing are addresses, MACs and reservations that a server's record says it has, and that
// etcd does not hold for it. They are listed after the records, and the records are read
// once more: only what did not change counts.
func (a *Control) missing(ctx context.Context, who owners) ([]Finding, error) {
	held, err := a.holdings(ctx)
	if err != nil {
		return nil, err
	}
	owned := map[string]string{} // network uid / address → uid
	for _, o := range held.addresses {
		owned[o.NetworkUID+"/"+o.Prefix.Addr().String()] = o.ServerUID()
	}
	placed := map[string]string{}
	for _, r := range held.reservations {
		placed[r.UID] = r.Host
	}
	var all []Finding
	for uid, rec := range who.records {
		if rec.Status.Host == "" || !standsOn(rec, rec.Status.Host) {
			continue
		}
		for _, p := range rec.Status.Ports {
			for _, text := range p.Addresses {
				addr, _, _ := strings.Cut(text, "/")
				if owner := owned[p.NetworkUID+"/"+addr]; owner != uid {
					problem := "its address " + addr + " of network/" + p.Network + " is not held for it: another server may get it"
					if owner != "" {
						problem = "its address " + addr + " of network/" + p.Network + " is held for " + who.server(owner)
					}
					all = append(all, noteOf(rec, "record/"+uid+"/address/"+addr, "", problem, "nothing by itself: delete the server and apply it again, or restore etcd from a newer backup"))
				}
			}
			if owner := held.macs[p.MAC]; p.MAC != "" && !strings.HasPrefix(owner, uid+"/") {
				all = append(all, noteOf(rec, "record/"+uid+"/mac/"+p.MAC, "", "its MAC address "+p.MAC+" is not held for it", "nothing by itself: delete the server and apply it again, or restore etcd from a newer backup"))
			}
		}
		if placed[uid] != rec.Status.Host {
			all = append(all, noteOf(rec, "record/"+uid+"/reservation", rec.Status.Host, "nothing is reserved for it on "+rec.Status.Host+": the host may be filled beyond its size", "nothing by itself: leave room there, or delete the server and apply it again"))
		}
	}
	return stillSo(ctx, a.store, who, sorted(all))
}

// server names a server by its uid.
func (o owners) server(uid string) string {
	if ref := o.ref(uid); ref != "" {
		return ref
	}
	return "server uid " + uid
}

// network names a network by its uid.
func (o owners) network(uid string) string {
	if ref := o.ref(uid); ref != "" {
		return ref
	}
	return "network uid " + uid
}

// claims are those whose operation is not open. The operations are asked after the claims
// were listed; one that begins again takes its claims again, which changes their revision.
func (a *Control) claims(ctx context.Context, claims []etcdstate.Claimed) ([]Finding, error) {
	var all []Finding
	for _, c := range claims {
		open, err := a.openWorkflow(ctx, c.WorkflowID)
		if err != nil {
			return nil, err
		}
		if open {
			continue
		}
		all = append(all, Finding{
			ID: fmt.Sprintf("claim/%s/%d", c.Key, c.Revision), Thing: ThingClaim, Name: c.Key, Revision: c.Revision,
			Object: "claim of " + c.WorkflowID + " on " + c.Key, Ref: c.Key, Problem: "left behind: that operation has ended",
		})
	}
	return all, nil
}

// some names a few of many.
func some(names []string) string {
	slices.Sort(names)
	if len(names) <= shownMost {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:shownMost], ", "), len(names)-shownMost)
}

func sorted(all []Finding) []Finding {
	slices.SortFunc(all, func(a, b Finding) int { return strings.Compare(a.ID, b.ID) })
	return all
}
