// Package network puts networks and the ports of servers on a host, and takes them away.
//
//	Ensure ── reference in etcd, bridge, namespace with gateway, NAT, DNS, gateway's port
//	Wire ──── port of a paused guest: VLAN, marks, what it may send, its name in DNS
//	Unwire, Release, Remove ── the way back; the last reference takes a network down
//	Restore ─ all of it from the records, after a reboot or a restart of Open vSwitch
//
// A network on a host is one bridge and one namespace (package hostnet); a guest's port
// sends through four tables. Without flows a bridge carries nothing (fail mode secure),
// and without its own flows a port is in nobody's table:
//
//	                 table 0: admit by port
//	                ┌──────────────────────┐
//	gateway ───────▶│ trusted              ├──────────────────────────────┐
//	guest ─────────▶│ its rate (meter)     ├─▶ portSecurity: false ──────▶│
//	anybody else ──▶│ drop                 │                              │
//	                └──────────┬───────────┘                              │
//	                           ▼ portSecurity: true                       │
//	                 table 10: what a guest says                          │
//	                ┌──────────────────────────────────────────┐          │
//	                │ 300  DHCP server, router advertisement,  │          │
//	                │      redirect: drop                      │          │
//	                │ 250  own neighbour discovery ──┐         │          │
//	                │ 240  any other: drop           │         │          │
//	                │ 200  ARP of its own MAC and IP ─────────────────────▶│
//	                │      IPv4 from its own MAC, IP ─────────────────────▶│
//	                │      DHCP request, if dhcp4 ────────────────────────▶│
//	                │      IPv6 from its own MAC ────┤         │          │
//	                │ miss drop                      │         │          │
//	                └────────────────────────────────┼─────────┘          │
//	                                                 ▼                    │
//	                 table 11: IPv6 source                                │
//	                ┌──────────────────────────────────────────┐          │
//	                │ 200  own addresses, link-local of its MAC ──────────▶│
//	                │      :: asking for its own address ─────────────────▶│
//	                │ miss drop                                │          ▼
//	                └──────────────────────────────────────────┘   table 20: NORMAL,
//	                                                               a learning switch
//	                                                               that keeps VLANs
//
// The flows of a port carry a cookie made from the server's uid and the NIC's name, and
// are replaced and deleted by it. What they were made from is kept beside the port, so
// they come back after ovs-vswitchd has lost them.
package network
