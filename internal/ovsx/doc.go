// Package ovsx drives Open vSwitch: bridges, ports and their marks in OVSDB, and the
// OpenFlow tables that say what a guest may send. It is the only importer of
// github.com/digitalocean/go-openvswitch.
//
//	Transact ──▶ go-openvswitch (VSwitch) ──▶ recorded ─┐
//	             commands its API cannot say ───────────┴─▶ one ovs-vsctl ──▶ OVSDB ──▶ ovs-vswitchd
//	Set…Flows ─▶ go-openvswitch (OpenFlow) ─▶ one bundle ──▶ ovs-ofctl ──▶ bridge
//
// Every change of OVSDB is one ovs-vsctl, which is one transaction, so a port never
// stands on a bridge without its tag. Every change of a port's flows is one OpenFlow
// bundle. Every call ends within [Deadline], and every error names its object and says
// whether trying again helps.
//
// What burrow makes carries external_ids, under the keys of this package; what carries
// none is not burrow's and is never changed.
package ovsx
