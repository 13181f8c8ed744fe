package libvirtx

import (
	"context"
	"fmt"

	"libvirt.org/go/libvirt"
)

// HostInfo is the hypervisor as libvirt sees it.
type HostInfo struct {
	Hostname  string
	CPUs      int // logical CPUs that are online
	MemoryMiB int
}

// Host asks for the machine's size and name.
func (c *Connection) Host(ctx context.Context) (HostInfo, error) {
	return do(ctx, c, call{object: "host", action: "read size"}, func(conn *libvirt.Connect) (HostInfo, error) {
		node, err := conn.GetNodeInfo()
		if err != nil {
			return HostInfo{}, err
		}
		name, err := conn.GetHostname()
		if err != nil {
			return HostInfo{}, err
		}
		return HostInfo{Hostname: name, CPUs: int(node.Cpus), MemoryMiB: int(node.Memory / 1024)}, nil
	})
}

// Version gives the versions of libvirt and of the hypervisor: "9.0.0", "7.2.22".
func (c *Connection) Version(ctx context.Context) (lib, hypervisor string, err error) {
	type pair struct{ lib, hypervisor uint32 }
	v, err := do(ctx, c, call{object: "libvirt " + c.uri, action: "read version"}, func(conn *libvirt.Connect) (pair, error) {
		l, err := conn.GetLibVersion()
		if err != nil {
			return pair{}, err
		}
		h, err := conn.GetVersion()
		return pair{l, h}, err
	})
	if err != nil {
		return "", "", err
	}
	return dotted(v.lib), dotted(v.hypervisor), nil
}

// dotted writes libvirt's packed version number: major*1,000,000 + minor*1,000 + release.
func dotted(v uint32) string {
	return fmt.Sprintf("%d.%d.%d", v/1_000_000, v/1_000%1_000, v%1_000)
}
