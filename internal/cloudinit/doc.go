// Package cloudinit writes the seed a guest configures itself from at its first boot: a
// NoCloud ISO (volume label "cidata") with three files.
//
//	Config ──▶ Render ──┬─ meta-data       instance-id "<uid>-<rebuild>", local-hostname
//	                    ├─ user-data       users and keys, host key, what to leave out; the user's own parts
//	                    └─ network-config  version 2, NICs found by MAC and named eth0, eth1, …
//	Seed ──▶ WriteISO
//
// Every string is written quoted: YAML 1.1, which cloud-init reads, takes bare MAC
// addresses for numbers and "on" for true.
//
// # VLANs
//
// An access port (one VLAN) is untagged in the guest. On a trunk the NIC itself carries
// what is untagged, the native VLAN, and with it the NIC's addresses; every other VLAN
// appears as a sub-interface eth<i>.<vlan>, up and without an address, for the user to
// configure (cloudInit.networkConfig, or a playbook). A trunk with no native VLAN
// carries nothing untagged: there the addresses are on the sub-interface of its first VLAN.
package cloudinit
