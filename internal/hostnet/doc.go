// Package hostnet makes a network's part of a host that is not Open vSwitch: one network
// namespace with the gateway's addresses, NAT, DNS and DHCP, from which guests are dialled.
//
//	        bridge (ovsx)                    namespace of the network
//	guest ──┤        ├── bwg… ═══ veth ═══ gateway 172.16.90.1/24
//	guest ──┤        │                        │ dnsmasq (DNS, DHCP)
//	                                          │ masquerade, nothing but DNS and ping inwards
//	        host                              │
//	 eth0 ◀─ masquerade ─── bwu… ═══ veth ═══ uplink 169.254.x.2/30      (NAT only)
//	         169.254.x.1/30
//
// Addresses of a network exist only in its namespace, so networks may overlap and no guest
// meets the host: what comes out of bwu… may be forwarded, and may not enter the host nor
// another network.
//
// On the host itself only this is changed: devices named bwg… and bwu…, the nftables
// tables "inet burrow" and "netdev burrow", and net.ipv4.ip_forward, which is set when
// the first NAT network is made and stays set. State is in the run directory, which
// goes with a reboot as namespaces do; it is written before anything is made, so what is
// found without it was made by somebody else and is refused.
package hostnet
