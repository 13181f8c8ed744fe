package seed

import (
	"context"
	"net/netip"

	"burrow.dev/burrow/internal/ansiblex"
	"burrow.dev/burrow/internal/ansiblex/inguest"
	"burrow.dev/burrow/internal/cloudinit"
)

// play gives the files of the playbook that runs in the guest, and the command that begins it.
func (a *Activities) play(ctx context.Context, in WriteIn) ([]cloudinit.File, [][]string, error) {
	p := inguest.Play{Key: FirstPlay, Spec: in.Play.Ansible, Host: ansiblex.Host{
		Name: in.Server.Name, UID: in.Server.UID, Labels: in.Play.Labels, Networks: in.Play.Networks, Image: in.Play.Image,
		Address: firstAddress(in),
	}}
	if err := p.Pack(ctx, a.cfg.Bundles, in.Play.Bundle); err != nil {
		return nil, nil, err
	}
	all, err := p.Files()
	if err != nil {
		return nil, nil, err
	}
	var files []cloudinit.File
	for _, f := range all {
		files = append(files, cloudinit.File(f))
	}
	return files, [][]string{p.Command("start")}, nil
}

// firstAddress is the server's first address, without its length; "" when it has none.
func firstAddress(in WriteIn) string {
	for _, port := range in.Ports {
		for _, text := range port.Addresses {
			if prefix, err := netip.ParsePrefix(text); err == nil {
				return prefix.Addr().String()
			}
		}
	}
	return ""
}
