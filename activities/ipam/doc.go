// Package ipam settles what a server's NICs are on their networks: addresses, MACs, device
// names, gateways, resolvers; and what a network is among the others: subnet, bridge.
//
//	NICs + networks' records ──▶ wants ──Pools.Allocate──▶ addresses ─┐
//	                        └──▶ MACs  ──Registry.Own────▶ MACs ──────┴──▶ Ports, complete
//
// Safety under concurrent workers is that of internal/etcdstate; what is here is pure.
package ipam
