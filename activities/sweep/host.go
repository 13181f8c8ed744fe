package sweep

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/uuid"

	"burrow.dev/burrow/activities"
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

// marked is a domain with our mark.
type marked struct {
	libvirtx.DomainInfo
	uid, server string
}

// inventory is what carries our marks on this host, and the files that guests use.
type inventory struct {
	domains  []marked
	inUse    map[string]string // file → name of a domain that uses it
	volumes  []volume.Named
	seeds    map[string][]string // uid → files
	consoles map[string][]string
	ports    []ovsx.Port
	networks map[string]string // uid → name
	refs     []etcdstate.Reference
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

func (h *Host) inventory(ctx context.Context) (inv inventory, err error) {
	if inv.domains, inv.inUse, err = h.allDomains(ctx); err != nil {
		return inv, err
	}
	if inv.volumes, err = h.cfg.Volumes.List(ctx); err != nil {
		return inv, err
	}
	if inv.seeds, err = byUID(h.cfg.SeedDir, ".iso"); err != nil {
		return inv, err
	}
	if inv.consoles, err = byUID(h.cfg.Consoles, ""); err != nil {
		return inv, err
	}
	if inv.ports, err = h.cfg.Switch.Ports(ctx, ovsx.KeyServer, ""); err != nil {
		return inv, err
	}
	if inv.networks, err = h.standing(ctx); err != nil {
		return inv, err
	}
	// After what stands: a network is referred to before anything of it is built.
	refs, err := h.cfg.Store.AllReferences(ctx)
	inv.refs = slices.DeleteFunc(refs, func(r etcdstate.Reference) bool { return r.Host != h.cfg.Name })
	return inv, err
}

func (h *Host) markedDomains(ctx context.Context) ([]marked, error) {
	ours, _, err := h.allDomains(ctx)
	return ours, err
}

// allDomains gives the domains with our mark, and which file is used by which domain,
// whoever's. Our mark is our metadata and the UUID that follows from it: one of them alone
// is a look-alike.
func (h *Host) allDomains(ctx context.Context) (ours []marked, inUse map[string]string, err error) {
	domains, err := h.cfg.Libvirt.Domains(ctx, domain.Namespace)
	inUse = map[string]string{}
	for _, d := range domains {
		for _, file := range d.Files {
			inUse[file] = d.Name
		}
		var m struct {
			UID  string `xml:"uid,attr"`
			Name string `xml:"name,attr"`
		}
		if d.Metadata != "" && xml.Unmarshal([]byte(d.Metadata), &m) == nil && isUID(m.UID) && manifest.DomainUUID(m.UID) == d.UUID {
			if m.Name == "" {
				m.Name = d.Name
			}
			ours = append(ours, marked{d, m.UID, m.Name})
		}
	}
	return ours, inUse, err
}

// standing gives the networks of which something stands here, by uid.
func (h *Host) standing(ctx context.Context) (map[string]string, error) {
	out := map[string]string{}
	networks, err := h.cfg.Stack.Networks()
	if err != nil {
		return nil, err
	}
	for _, n := range networks {
		out[n.UID] = n.Name
	}
	bridges, err := h.cfg.Switch.Bridges(ctx, ovsx.KeyNetwork, "")
	if err != nil {
		return nil, err
	}
	for _, b := range bridges {
		if uid := b.ExternalIDs[ovsx.KeyNetwork]; uid != "" && out[uid] == "" {
			out[uid] = b.Name
		}
	}
	return out, nil
}

func isUID(s string) bool { return uuid.Validate(s) == nil && len(s) == uidLength }

const uidLength = 36

// byUID lists files whose name begins with a uid.
func byUID(dir, suffix string) (map[string][]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	out := map[string][]string{}
	for _, e := range entries {
		name := strings.TrimPrefix(e.Name(), ".")
		if len(name) > uidLength && isUID(name[:uidLength]) && strings.Contains(name, suffix) {
			out[name[:uidLength]] = append(out[name[:uidLength]], e.Name())
		}
	}
	return out, nil
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
	for uid := range inv.seeds {
		if !who.lives(uid) {
			all = append(all, who.orphan(Finding{ID: h.id(ThingSeed, uid), Thing: ThingSeed, Host: h.cfg.Name, UID: uid, Object: "seed of server uid " + uid}))
		}
	}
	for uid := range inv.consoles {
		if !who.lives(uid) {
			all = append(all, who.orphan(Finding{ID: h.id(ThingConsole, uid), Thing: ThingConsole, Host: h.cfg.Name, UID: uid, Object: "console log of server uid " + uid}))
		}
	}
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
			Object: "network " + name + " on " + h.cfg.Name, Problem: "it stands, and no server there needs it",
		})
	}
	return sorted(all)
}

// missing are parts of settled servers of this host that are not here. Nothing is made
// again by a sweep: what can be, the server's next start makes. What is here is listed
// after the records, and the records are read once more: only what did not change counts.
func (h *Host) missing(ctx context.Context, who owners) ([]Finding, error) {
	domains, err := h.markedDomains(ctx)
	if err != nil {
		return nil, err
	}
	ports, err := h.cfg.Switch.Ports(ctx, ovsx.KeyServer, "")
	if err != nil {
		return nil, err
	}
	var all []Finding
	for _, rec := range who.records {
		if standsOn(rec, h.cfg.Name) {
			all = append(all, h.missingOf(rec, domains, ports)...)
		}
	}
	return stillSo(ctx, h.cfg.Store, who, sorted(all))
}

// standsOn reports whether a record is of a server that is built, on a host.
func standsOn(rec manifest.Record, host string) bool {
	return rec.Kind == manifest.KindServer && rec.Status.Host == host && rec.Status.Phase.Settled() && rec.Status.Phase != manifest.PhaseFailed
}

func (h *Host) missingOf(rec manifest.Record, domains []marked, ports []ovsx.Port) (all []Finding) {
	note := func(what, problem, next string) {
		all = append(all, noteOf(rec, h.id(ThingRecord, rec.Metadata.UID+"/"+what), h.cfg.Name, problem, next))
	}
	for _, d := range rec.Status.Disks {
		if absent(d.Path) {
			note("disk/"+d.Name, "its disk "+d.Name+" is gone: "+d.Path, "nothing by itself: bring the file back, or delete the server and apply it again")
		}
	}
	if absent(rec.Status.Seed) {
		note("seed", "its seed is gone: "+rec.Status.Seed, "nothing by itself: a running guest goes on; delete the server and apply it again before its next start")
	}
	i := slices.IndexFunc(domains, func(d marked) bool { return d.uid == rec.Metadata.UID })
	switch {
	case i < 0:
		note("domain", "libvirt has no domain of it", "nothing by itself: `burrow start "+rec.Metadata.Name+"` defines it again")
	case rec.Status.Phase == manifest.PhaseRunning && domains[i].State == "running":
		for _, p := range rec.Status.Ports {
			if !slices.ContainsFunc(ports, func(o ovsx.Port) bool { return o.Name == p.Device }) {
				note("port/"+p.Name, "its port "+p.Device+" is not on a bridge", "the host's worker puts it there again within seconds; `burrow restart "+rec.Metadata.Name+"` if it stays so")
			}
		}
	}
	return all
}

func absent(path string) bool {
	if !filepath.IsAbs(path) {
		return false
	}
	_, err := os.Lstat(path)
	return errors.Is(err, fs.ErrNotExist)
}

// rank is the order in which things of a server go: the guest first.
var rank = []Thing{ThingDomain, ThingPort, ThingVolume, ThingSeed, ThingConsole, ThingReference, ThingNetwork}

// ClearHost removes what was left behind here, the guest before its disks. Everything is
// looked at again: its owner must still be gone, and its mark be there.
func (h *Host) ClearHost(ctx context.Context, in ClearIn) (ClearOut, error) {
	inv, err := h.inventory(ctx)
	if err != nil {
		return ClearOut{}, err
	}
	who, err := readOwners(ctx, h.cfg.Store)
	if err != nil {
		return ClearOut{}, err
	}
	in.Findings = slices.Clone(in.Findings)
	slices.SortStableFunc(in.Findings, func(a, b Finding) int { return slices.Index(rank, a.Thing) - slices.Index(rank, b.Thing) })
	removed := map[string]bool{}
	return clearAll(in, func(f Finding) error {
		if f.Thing != ThingNetwork && who.lives(f.UID) {
			return errLives
		}
		h.cfg.Log.Info("sweep removes", slog.String("object", f.Object), slog.String("uid", f.UID))
		err := h.remove(ctx, f, inv, removed)
		if f.Thing == ThingDomain && err == nil {
			removed[f.Name] = true
		}
		return err
	}), nil
}

func (h *Host) remove(ctx context.Context, f Finding, inv inventory, removed map[string]bool) (err error) {
	server := activities.Server{Name: f.Name, UID: f.UID}
	switch f.Thing {
	case ThingDomain, ThingConsole:
		_, err = h.cfg.Domains.Remove(ctx, domain.RemoveIn{Server: server})
	case ThingPort:
		_, err = h.cfg.Network.Unwire(ctx, network.UnwireIn{Server: server})
	case ThingVolume:
		err = h.removeVolume(ctx, f, inv, removed)
	case ThingSeed:
		_, err = h.cfg.Seeds.Remove(ctx, seed.RemoveIn{Server: server})
	case ThingReference:
		_, err = h.cfg.Network.Release(ctx, network.ReleaseIn{Server: server, Ports: []manifest.Port{{NetworkUID: f.Name, Network: f.Name}}})
	case ThingNetwork:
		if slices.ContainsFunc(inv.ports, func(p ovsx.Port) bool { return p.ExternalIDs[ovsx.KeyNetwork] == f.UID }) {
			return errLives
		}
		_, err = h.cfg.Network.Remove(ctx, network.RemoveIn{Name: f.Name, UID: f.UID})
	default:
		err = fmt.Errorf("%s cannot be removed here", f.Thing)
	}
	return err
}

// removeVolume refuses one that a domain uses, whoever's it is.
func (h *Host) removeVolume(ctx context.Context, f Finding, inv inventory, removed map[string]bool) error {
	for _, v := range inv.volumes {
		if v.Volume != f.Name {
			continue
		}
		path, err := h.cfg.Volumes.Path(ctx, v)
		if err != nil {
			return err
		}
		if user := inv.inUse[path]; user != "" && !removed[user] {
			return fmt.Errorf("domain %s uses it", user)
		}
		return h.cfg.Volumes.DeleteNamed(ctx, v)
	}
	return nil // gone
}
