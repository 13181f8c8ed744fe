package libvirtx

import (
	"context"

	"libvirt.org/go/libvirt"
	"libvirt.org/go/libvirtxml"
)

// DomainInfo is one domain of the host, as a census needs it.
type DomainInfo struct {
	UUID, Name, State string
	// Metadata is the element of the namespace that was asked for; "" when it has none.
	Metadata string
	// Files are the sources of its disks and media, backing chains not included.
	Files []string
}

// Domains lists all domains of the host, running or not, whoever made them, with the
// metadata element of a namespace.
func (c *Connection) Domains(ctx context.Context, uri string) ([]DomainInfo, error) {
	cl := call{object: "domains", action: "list", limit: createTimeout}
	return do(ctx, c, cl, func(conn *libvirt.Connect) ([]DomainInfo, error) {
		all, err := conn.ListAllDomains(0)
		if err != nil {
			return nil, err
		}
		defer func() {
			for i := range all {
				_ = all[i].Free()
			}
		}()
		var out []DomainInfo
		for i := range all {
			info, err := domainInfo(&all[i], uri)
			if isCode(err, libvirt.ERR_NO_DOMAIN) {
				continue // gone since
			}
			if err != nil {
				return nil, err
			}
			out = append(out, info)
		}
		return out, nil
	})
}

func domainInfo(d *libvirt.Domain, uri string) (DomainInfo, error) {
	doc, err := d.GetXMLDesc(0)
	if err != nil {
		return DomainInfo{}, err
	}
	var def libvirtxml.Domain
	if err := def.Unmarshal(doc); err != nil {
		return DomainInfo{}, err
	}
	info := DomainInfo{UUID: def.UUID, Name: def.Name, Files: files(def)}
	state, _, err := d.GetState()
	if err != nil {
		return DomainInfo{}, err
	}
	info.State = stateName(state)
	info.Metadata, err = d.GetMetadata(libvirt.DOMAIN_METADATA_ELEMENT, uri, libvirt.DOMAIN_AFFECT_CURRENT)
	if isCode(err, libvirt.ERR_NO_DOMAIN_METADATA) {
		err = nil
	}
	return info, err
}

func files(def libvirtxml.Domain) []string {
	if def.Devices == nil {
		return nil
	}
	var out []string
	for _, disk := range def.Devices.Disks {
		if disk.Source != nil && disk.Source.File != nil {
			out = append(out, disk.Source.File.File)
		}
	}
	return out
}
