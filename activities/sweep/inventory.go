package sweep

import (
	"context"
	"encoding/xml"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"

	"burrow.dev/burrow/activities/domain"
	"burrow.dev/burrow/activities/volume"
	"burrow.dev/burrow/internal/etcdstate"
	"burrow.dev/burrow/internal/libvirtx"
	"burrow.dev/burrow/internal/ovsx"
	"burrow.dev/burrow/manifest"
	"github.com/google/uuid"
)

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
