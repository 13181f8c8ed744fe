package workflows

import (
	"fmt"
	"net/netip"
	"strings"

	"burrow.dev/burrow/activities"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/manifest"
)

// leastBootGiB is reserved for a boot volume whose size only its image knows yet.
const leastBootGiB = 10

// diskNeed is what a server takes of its host's default pool, in GiB.
func diskNeed(spec manifest.ServerSpec) int {
	need := max(spec.BootVolume.Size, 0)
	if need == 0 {
		need = leastBootGiB
	}
	for _, s := range ownedStorage(spec) {
		need += s.Spec.Size
	}
	return need
}

// overgrown is what the disks of a server's own have beyond what is declared, in GiB: a disk
// whose grow was undone stays as large.
func overgrown(spec manifest.ServerSpec, disks []manifest.Disk) int {
	declared := map[string]int{"boot": max(spec.BootVolume.Size, leastBootGiB)}
	if spec.BootVolume.Size > 0 {
		declared["boot"] = spec.BootVolume.Size
	}
	for _, s := range ownedStorage(spec) {
		declared[s.Name] = s.Spec.Size
	}
	more := 0
	for _, d := range disks {
		if size, ok := declared[d.Name]; ok && d.Owned {
			more += max(0, d.SizeGiB-size)
		}
	}
	return more
}

// attachedNames are the data disks that are Volume records of their own.
func attachedNames(spec manifest.ServerSpec) []string {
	var names []string
	for _, s := range spec.Storage {
		if s.Spec == nil {
			names = append(names, s.Name)
		}
	}
	return names
}

// ownedStorage are the data disks that live and die with the server.
func ownedStorage(spec manifest.ServerSpec) []manifest.Storage {
	var owned []manifest.Storage
	for _, s := range spec.Storage {
		if s.Spec != nil {
			owned = append(owned, s)
		}
	}
	return owned
}

// hostOf is the one host where all attached volumes are; "" when there are none.
func hostOf(volumes []manifest.Record) (string, error) {
	host, first := "", ""
	for _, v := range volumes {
		switch {
		case host == "":
			host, first = v.Status.Host, v.Metadata.Name
		case v.Status.Host != host:
			return "", errs.NewPermanent("volume/"+v.Metadata.Name, "attach",
				errs.Reason("it is on %s, and volume/%s is on %s: a server has all its disks on one host", v.Status.Host, first, host),
				"use volumes of one host")
		}
	}
	return host, nil
}

// elsewhere refuses volumes that are on another host than the server.
func elsewhere(server activities.Server, host, on string) error {
	return errs.NewPermanent(server.Ref(), "attach volumes", errs.Reason("it stands on %s, and they are on %s", host, on), "use volumes of its host")
}

func networkNames(nics []manifest.NIC) []string {
	var names []string
	for _, n := range nics {
		names = append(names, n.Network)
	}
	return names
}

func addressesOf(ports []manifest.Port) []string {
	var all []string
	for _, port := range ports {
		all = append(all, port.Addresses...)
	}
	return all
}

// networkOf is the network of the port that has an address ("10.0.0.2", with or without length).
func networkOf(ports []manifest.Port, address string) string {
	bare, _, _ := strings.Cut(address, "/")
	for _, port := range ports {
		for _, a := range port.Addresses {
			if prefix, err := netip.ParsePrefix(a); err == nil && prefix.Addr().String() == bare {
				return port.Network
			}
		}
	}
	return ""
}

// wiring says how each port is wired: "db eth1 → br-db-net tag 120".
func wiring(server string, ports []manifest.Port) []string {
	var all []string
	for _, port := range ports {
		s := fmt.Sprintf("%s %s → %s", server, port.Eth(), port.Bridge)
		switch {
		case len(port.VLANs) == 1:
			s += fmt.Sprintf(" tag %d", port.VLANs[0])
		case len(port.VLANs) > 1:
			s += " trunk " + strings.Trim(strings.ReplaceAll(fmt.Sprint(port.VLANs), " ", ","), "[]")
		}
		all = append(all, s)
	}
	return all
}
