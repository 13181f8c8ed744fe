package ovsx

import (
	"context"
	"encoding/json"
	"fmt"
	"sort"
	"strconv"
	"strings"

	"github.com/digitalocean/go-openvswitch/ovs"
)

// Tx collects the commands of one ovs-vsctl, which OVSDB takes whole or not at all.
type Tx struct {
	sw       *ovs.VSwitchService
	commands [][]string
}

// Transact runs what change collects as one transaction, and returns when ovs-vswitchd
// has applied it. object and action are for the error. A change that collects nothing
// does nothing.
func (c *Client) Transact(ctx context.Context, object, action string, change func(*Tx)) error {
	tx := &Tx{}
	// go-openvswitch says a command at a time; recorded instead of run, they become one.
	tx.sw = ovs.New(ovs.Exec(func(_ string, args ...string) ([]byte, error) {
		tx.add(args...)
		return nil, nil
	})).VSwitch
	change(tx)
	if len(tx.commands) == 0 {
		return nil
	}
	args := []string{timeoutFlag()}
	for _, command := range tx.commands {
		args = append(append(args, "--"), command...)
	}
	_, err := run(ctx, nil, "ovs-vsctl", args...)
	return translate(object, action, err)
}

func (tx *Tx) add(command ...string) { tx.commands = append(tx.commands, command) }

// recorded cannot fail: the recorder answers every command with success.
func recorded(error) {}

// BridgeSettings are what burrow decides about a bridge.
type BridgeSettings struct {
	// Datapath is "system" or "netdev"; see [Client.HostDatapath].
	Datapath string
	// ExternalIDs mark the bridge.
	ExternalIDs map[string]string
}

// AddBridge makes a bridge, or brings an existing one to these settings: fail mode
// secure (without flows nothing passes), no in-band control rules.
func (tx *Tx) AddBridge(bridge string, s BridgeSettings) {
	recorded(tx.sw.AddBridge(bridge))
	recorded(tx.sw.SetFailMode(bridge, ovs.FailModeSecure))
	tx.add(append([]string{
		"set", "Bridge", bridge, "datapath_type=" + s.Datapath, "other_config:disable-in-band=true",
	}, pairs("external_ids", s.ExternalIDs)...)...)
}

// DeleteBridge deletes a bridge with its ports; none is success.
func (tx *Tx) DeleteBridge(bridge string) { recorded(tx.sw.DeleteBridge(bridge)) }

// PortSettings are what burrow decides about a port.
type PortSettings struct {
	// Tag is the access VLAN, or with Trunks the native VLAN; 0 is none.
	Tag int
	// Trunks are the VLANs a trunk carries tagged; empty: an access port.
	Trunks []int
	// ExternalIDs mark the port's interface.
	ExternalIDs map[string]string
}

// AddPort puts a device on a bridge, or brings a port that is there to these settings.
func (tx *Tx) AddPort(bridge, port string, s PortSettings) {
	recorded(tx.sw.AddPort(bridge, port))
	tx.add(append([]string{"set", "Port", port}, s.vlan()...)...)
	if len(s.ExternalIDs) > 0 {
		tx.add(append([]string{"set", "Interface", port}, pairs("external_ids", s.ExternalIDs)...)...)
	}
}

// vlan says tag, trunks and mode together: a trunk without a native VLAN drops what is
// untagged, and a port without any VLAN carries only what is untagged.
func (s PortSettings) vlan() []string {
	tag, trunks, mode := "tag=[]", "trunks=[]", "vlan_mode=access"
	if s.Tag != 0 {
		tag = "tag=" + strconv.Itoa(s.Tag)
	}
	if len(s.Trunks) > 0 {
		var all []string
		for _, v := range s.Trunks {
			all = append(all, strconv.Itoa(v))
		}
		trunks, mode = "trunks="+strings.Join(all, ","), "vlan_mode=trunk"
		if s.Tag != 0 {
			mode = "vlan_mode=native-untagged"
		}
	}
	return []string{tag, trunks, mode}
}

// DeletePort takes a port off whatever bridge it is on; none is success.
func (tx *Tx) DeletePort(port string) { tx.add("--if-exists", "del-port", port) }

// pairs writes map settings in a stable order, quoted as OVSDB strings.
func pairs(column string, values map[string]string) []string {
	keys := make([]string, 0, len(values))
	for key := range values {
		keys = append(keys, key)
	}
	sort.Strings(keys)
	var all []string
	for _, key := range keys {
		all = append(all, fmt.Sprintf("%s:%s=%s", column, key, quote(values[key])))
	}
	return all
}

// quote writes an OVSDB string, which is JSON's: a value may hold any character.
func quote(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		return `""` // a string always encodes
	}
	return string(b)
}
