package sweep

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"burrow.dev/burrow/internal/ovsx"
	"burrow.dev/burrow/manifest"
)

// missing are parts of settled servers of this host that are not here. Nothing is made
// again by a sweep. What is here is listed
// after the records, and the records are read once more: only what did not change counts.
func (h *Host) missing(ctx context.Context, who owners) ([]Finding, error) {
	domains, _, err := h.allDomains(ctx)
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
	mend := mendOf(rec)
	for _, d := range rec.Status.Disks {
		if absent(d.Path) {
			note("disk/"+d.Name, "its disk "+d.Name+" is gone: "+d.Path, mend)
		}
	}
	if absent(rec.Status.Seed) {
		note("seed", "its seed is gone: "+rec.Status.Seed, mend)
	}
	i := slices.IndexFunc(domains, func(d marked) bool { return d.uid == rec.Metadata.UID })
	switch {
	case i < 0:
		note("domain", "libvirt has no domain of it", mend)
	case rec.Status.Phase == manifest.PhaseRunning && domains[i].State == "running":
		for _, p := range rec.Status.Ports {
			if !slices.ContainsFunc(ports, func(o ovsx.Port) bool { return o.Name == p.Device }) {
				note("port/"+p.Name, "its port "+p.Device+" is not on a bridge", "the host's worker puts it there again within seconds; `burrow restart "+rec.Metadata.Name+"` if it stays so")
			}
		}
	}
	return all
}

// mendOf says how a person makes a server whole that lost something: its domain is made by
// its next start, for which every file must be there; its boot disk and seed by a rebuild.
func mendOf(rec manifest.Record) string {
	name, disks := rec.Metadata.Name, rec.Status.Disks
	remove := "or `burrow delete server/" + name + "` and apply it again"
	data := slices.ContainsFunc(disks[min(1, len(disks)):], func(d manifest.Disk) bool { return absent(d.Path) })
	switch {
	case data:
		return "nothing by itself: bring the file back, " + remove
	case absent(rec.Status.Seed), len(disks) > 0 && absent(disks[0].Path):
		return "nothing by itself: bring the file back; or `burrow rebuild " + name + "`, which makes a new boot disk and seed; " + remove
	}
	return "nothing by itself: `burrow start " + name + "` defines it again"
}

func absent(path string) bool {
	if !filepath.IsAbs(path) {
		return false
	}
	_, err := os.Lstat(path)
	return errors.Is(err, fs.ErrNotExist)
}
