package manifest

import "regexp"

// unsupported lists what the manifest's design has and this version has not. Each is
// refused by name. The change that builds one removes its row.
//
// Path is the field, with [] for any index; Value, when set, is the one value of it.
var unsupported = []struct {
	Kind  Kind
	Path  string
	Value string
	// Instead is what can be done today.
	Instead string
}{
	{KindServer, "spec.count", "", "write one document for each server"},
	{KindServer, "spec.firmware", "uefi", "use bios"},
	{KindServer, "spec.placement.antiAffinity", "", "use metadata.nodeName or spec.placement.selector"},
	{KindServer, "spec.bootVolume.metadata", "", "remove it; the server makes its own boot volume from mmImage"},
	{KindServer, "spec.bootVolume.spec.type", "lvm", "use qcow2 or raw"},
	{KindServer, "spec.bootVolume.spec.type", "ceph", "use qcow2 or raw"},
	{KindServer, "spec.bootVolume.spec.type", "zfs", "use qcow2 or raw"},
	{KindServer, "spec.storage[].spec.type", "lvm", "use qcow2 or raw"},
	{KindServer, "spec.storage[].spec.type", "ceph", "use qcow2 or raw"},
	{KindServer, "spec.storage[].spec.type", "zfs", "use qcow2 or raw"},
	{KindServer, "spec.storage[].spec.iscsi", "", "use type qcow2 or raw"},
	{KindServer, "spec.storage[].spec.storageClass", "", "remove it; the host's default pool is used"},
	{KindServer, "spec.networkInterface[].portgroup", "", "use vlans"},
	{KindServer, "spec.networkInterface[].securityGroups", "", "remove it; the network's portSecurity still holds"},
	{KindServer, "spec.ansible.onBoot", "", "use pull or remotePlaybook, which run at the first boot; what is to run at every boot, a playbook can set up"},
	{KindVolume, "spec.storageClass", "", "remove it; the host's default pool is used"},
	{KindVolume, "spec.kind", "os", "use kind data; a server makes its own boot volume"},
	{KindVolume, "spec.clone", "", "remove it; boot volumes are linked clones of their image"},
	{KindVolume, "spec.image", "", "remove it; a server makes its own boot volume from mmImage"},
	{KindNetwork, "spec.mode", "routed", "use nat or isolated"},
	{KindNetwork, "spec.mode", "bridge", "use nat or isolated"},
	{KindNetwork, "spec.mode", "overlay", "use nat or isolated, on one host"},
	{KindNetwork, "spec.uplink", "", "use mode nat"},
	{KindNetwork, "spec.overlayMode", "", "use mode nat or isolated, on one host"},
	{KindNetwork, "spec.vni", "", "use mode nat or isolated, on one host"},
	{KindNetwork, "spec.underlayInterface", "", "use mode nat or isolated, on one host"},
	{KindVolume, "spec.type", "lvm", "use qcow2 or raw"},
	{KindVolume, "spec.type", "ceph", "use qcow2 or raw"},
	{KindVolume, "spec.type", "zfs", "use qcow2 or raw"},
	{KindVolume, "spec.iscsi", "", "use type qcow2 or raw"},
}

// unsupportedKinds are kinds that cannot be declared, and what to do instead.
var unsupportedKinds = map[string]string{
	string(KindSecurityGroup): "kind SecurityGroup is not supported yet; remove the document",
	string(KindHost):          "kind Host is not supported yet; a host is registered by its worker",
	"Secret":                  "kind Secret is not supported yet; remove the document, store the value with `burrow secret set NAME`, and write secret:NAME where it is used",
}

var indexPattern = regexp.MustCompile(`\[\d+\]`)

// insteadOf gives what can be done instead of a field, or of one value of it, that is
// not supported yet; ok is false for what is not in the table.
func insteadOf(kind Kind, path, value string) (instead string, ok bool) {
	path = indexPattern.ReplaceAllString(path, "[]")
	for _, row := range unsupported {
		if row.Kind == kind && row.Path == path && row.Value == value {
			return row.Instead, true
		}
	}
	return "", false
}
