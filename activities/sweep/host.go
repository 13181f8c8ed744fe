package sweep

import (
	"context"
	"fmt"
	"log/slog"

	"burrow.dev/burrow/activities/domain"
	"burrow.dev/burrow/activities/network"
	"burrow.dev/burrow/activities/seed"
	"burrow.dev/burrow/activities/volume"
	"burrow.dev/burrow/internal/etcdstate"
	"burrow.dev/burrow/internal/hostnet"
	"burrow.dev/burrow/internal/libvirtx"
	"burrow.dev/burrow/internal/ovsx"
	"burrow.dev/burrow/manifest"
)

// HostStore is what a host needs of etcd.
type HostStore interface {
	Records
	AllReferences(ctx context.Context) ([]etcdstate.Reference, error)
}

// Libvirt lists the host's domains.
type Libvirt interface {
	Domains(ctx context.Context, uri string) ([]libvirtx.DomainInfo, error)
}

// Switch lists what carries our marks in Open vSwitch.
type Switch interface {
	Ports(ctx context.Context, key, value string) ([]ovsx.Port, error)
	Bridges(ctx context.Context, key, value string) ([]ovsx.Bridge, error)
}

// Networks lists the networks that stand on the host.
type Networks interface {
	Networks() ([]hostnet.Network, error)
}

// HostConfig is what a host looks at, and what removes it.
type HostConfig struct {
	Name     string
	Store    HostStore
	Libvirt  Libvirt
	Switch   Switch
	Stack    Networks
	SeedDir  string
	Consoles string

	Domains *domain.Activities
	Network *network.Activities
	Volumes *volume.Activities
	Seeds   *seed.Activities
	Log     *slog.Logger
}

// Host is the part of the activities that looks at one host.
type Host struct{ cfg HostConfig }

// NewHost makes the host side.
func NewHost(cfg HostConfig) *Host {
	if cfg.Log == nil {
		cfg.Log = slog.Default()
	}
	return &Host{cfg: cfg}
}

// LookHost lists what differs between this host and the records: first what is here, then
// who needs it, then the records.
func (h *Host) LookHost(ctx context.Context, _ LookIn) (LookOut, error) {
	inv, err := h.inventory(ctx)
	if err != nil {
		return LookOut{}, err
	}
	who, err := readOwners(ctx, h.cfg.Store)
	if err != nil {
		return LookOut{}, err
	}
	for _, d := range inv.domains {
		who.names[d.uid] = manifest.Ref(manifest.KindServer, d.server)
	}
	var all []Finding
	all = append(all, h.domains(inv, who)...)
	all = append(all, h.volumes(inv, who)...)
	all = append(all, h.files(inv, who)...)
	all = append(all, h.ports(inv, who)...)
	all = append(all, h.references(inv, who)...)
	all = append(all, h.networks(inv, who)...)
	missing, err := h.missing(ctx, who)
	if err != nil {
		return LookOut{}, err
	}
	all = append(all, missing...)
	for i := range all {
		all[i].OnHost = true
	}
	return bounded(all), nil
}

func (h *Host) id(thing Thing, name string) string {
	return h.cfg.Name + "/" + string(thing) + "/" + name
}

func (h *Host) domains(inv inventory, who owners) []Finding {
	var all []Finding
	for _, d := range inv.domains {
		f := Finding{
			ID: h.id(ThingDomain, d.uid), Thing: ThingDomain, Host: h.cfg.Name, UID: d.uid, Name: d.server,
			Object: fmt.Sprintf("domain %s (%s)", d.Name, d.State), Active: d.State != "shutoff",
		}
		rec, ok := who.records[d.uid]
		switch {
		case !who.lives(d.uid):
			all = append(all, who.orphan(f))
		case ok && rec.Status.Phase.Settled() && rec.Status.Host != "" && rec.Status.Host != h.cfg.Name:
			f.Verdict, f.Ref = VerdictNote, who.ref(d.uid)
			f.Problem = "its record says that the server is on " + rec.Status.Host
			f.Next = "nothing by itself: look which of the two is right, and `virsh undefine` the other"
			all = append(all, f)
		}
	}
	return all
}

// volumes with one of our names are ours only when their owner is known by something else
// too: the store remembers it, or a domain or seed here carries its whole uid.
func (h *Host) volumes(inv inventory, who owners) []Finding {
	var all []Finding
	for _, v := range inv.volumes {
		uid, ok := knownOwner(v, inv, who)
		if !ok || who.lives(uid) {
			continue
		}
		all = append(all, who.orphan(Finding{
			ID: h.id(ThingVolume, v.Volume), Thing: ThingVolume, Host: h.cfg.Name, UID: uid, Name: v.Volume, Object: "volume " + v.Volume,
		}))
	}
	return all
}

// knownOwner finds the whole uid of a volume's owner, whose name must be the same too.
func knownOwner(v volume.Named, inv inventory, who owners) (uid string, ok bool) {
	kind := manifest.KindServer
	if v.Resource {
		kind = manifest.KindVolume
	}
	for uid, rec := range who.records {
		if short(uid) == v.Owner && rec.Kind == kind && rec.Metadata.Name == v.OwnerName {
			return uid, true
		}
	}
	for uid, d := range who.deleted {
		if short(uid) == v.Owner && d.Kind == kind && d.Name == v.OwnerName {
			return uid, true
		}
	}
	for _, d := range inv.domains {
		if short(d.uid) == v.Owner && d.server == v.OwnerName && !v.Resource {
			return d.uid, true
		}
	}
	for uid := range inv.seeds {
		if short(uid) == v.Owner && !v.Resource {
			return uid, true
		}
	}
	return "", false
}

func (h *Host) files(inv inventory, who owners) []Finding {
	var all []Finding
	left := func(thing Thing, what string, byUID map[string][]string) {
		for uid := range byUID {
			if !who.lives(uid) {
				all = append(all, who.orphan(Finding{ID: h.id(thing, uid), Thing: thing, Host: h.cfg.Name, UID: uid, Object: what + " of server uid " + uid}))
			}
		}
	}
	left(ThingSeed, "seed", inv.seeds)
	left(ThingConsole, "console log", inv.consoles)
	return sorted(all)
}

func (h *Host) ports(inv inventory, who owners) []Finding {
	var all []Finding
	for _, p := range inv.ports {
		uid := p.ExternalIDs[ovsx.KeyServer]
		// Our ports have names that follow from their marks: what has the marks alone is not ours.
		if uid == "" || p.Name != manifest.DeviceName(uid, p.ExternalIDs[ovsx.KeyNIC]) || who.lives(uid) {
			continue
		}
		all = append(all, who.orphan(Finding{ID: h.id(ThingPort, p.Name), Thing: ThingPort, Host: h.cfg.Name, UID: uid, Name: p.Name, Object: "OVS port " + p.Name}))
	}
	return all
}

func (h *Host) references(inv inventory, who owners) []Finding {
	var all []Finding
	for _, r := range inv.refs {
		if !who.lives(r.Owner) {
			all = append(all, who.orphan(Finding{
				ID: h.id(ThingReference, r.NetworkUID+"/"+r.Owner), Thing: ThingReference, Host: h.cfg.Name, UID: r.Owner, Name: r.NetworkUID,
				Object: "use of " + who.network(r.NetworkUID) + " on " + h.cfg.Name,
			}))
		}
	}
	return all
}

// networks are those that stand here and no server here refers to. One that carries a
// server's port stays while it does.
func (h *Host) networks(inv inventory, who owners) []Finding {
	needed := map[string]bool{}
	for _, r := range inv.refs {
		needed[r.NetworkUID] = true
	}
	for _, p := range inv.ports {
		needed[p.ExternalIDs[ovsx.KeyNetwork]] = true
	}
	var all []Finding
	for uid, name := range inv.networks {
		if needed[uid] || !isUID(uid) {
			continue
		}
		all = append(all, Finding{
			ID: h.id(ThingNetwork, uid), Thing: ThingNetwork, Host: h.cfg.Name, UID: uid, Name: name, Deleted: true,
			Object: "network " + name + " on " + h.cfg.Name, Problem: "it stands, and no server there needs it", Kept: who.keeps(),
		})
	}
	return sorted(all)
}
