package ovsx

import (
	"context"
	"strings"
	"time"

	"burrow.dev/burrow/internal/errs"
	"github.com/vishvananda/netlink"
)

// Keys of external_ids that mark what burrow makes.
const (
	// KeyNetwork holds the uid of the network, on its bridge and on every interface of it.
	KeyNetwork = "burrow-network"
	// KeyServer holds the uid of the server, on the interfaces of its NICs.
	KeyServer = "burrow-server"
	// KeyNIC holds the NIC's name on its server.
	KeyNIC = "burrow-nic"
	// KeyRules holds the NIC's [Rules] as JSON, so that flows can be written again
	// after ovs-vswitchd has lost them.
	KeyRules = "burrow-rules"
	// KeyGateway is "true" on the interface that leads to the network's namespace.
	KeyGateway = "burrow-gateway"
	// KeyIndex holds the index of the gateway's device: one that was made anew under the
	// same name must be put on the bridge again.
	KeyIndex = "burrow-ifindex"
	// KeyAttachedMAC is libvirt's own mark on an interface: the guest's MAC.
	KeyAttachedMAC = "attached-mac"
	// KeyInterfaceID is the usual name of a port's identity.
	KeyInterfaceID = "iface-id"
)

// Datapath types.
const (
	DatapathSystem = "system" // the kernel's openvswitch module
	DatapathNetdev = "netdev" // userspace
)

// Bridge is a bridge as OVSDB has it.
type Bridge struct {
	Name        string
	Datapath    string // "" is "system"
	FailMode    string // "secure", "standalone" or ""
	DatapathID  string // empty until ovs-vswitchd has made the bridge
	ExternalIDs map[string]string
}

const bridgeColumns = "--columns=name,datapath_type,datapath_id,fail_mode,external_ids"

// Bridge looks a bridge up by name. errors.Is errs.ErrNotFound when there is none.
func (c *Client) Bridge(ctx context.Context, name string) (Bridge, error) {
	found, err := c.bridges(ctx, "bridge "+name, "name="+quote(name))
	if err != nil {
		return Bridge{}, err
	}
	if len(found) == 0 {
		return Bridge{}, errs.NewTransient("bridge "+name, "look up", errs.ErrNotFound)
	}
	return found[0], nil
}

// Bridges lists the bridges that carry a mark; key alone (value "") lists any value of it.
func (c *Client) Bridges(ctx context.Context, key, value string) ([]Bridge, error) {
	return c.bridges(ctx, "bridges of "+key+" "+value, condition(key, value))
}

func (c *Client) bridges(ctx context.Context, object, condition string) ([]Bridge, error) {
	out, err := c.vsctl(ctx, bridgeColumns, "find", "Bridge", condition)
	if err != nil {
		return nil, translate(object, "look up", err)
	}
	tables, err := parseTables(out)
	if err != nil {
		return nil, errs.NewTransient(object, "look up", err)
	}
	var all []Bridge
	for _, rows := range tables {
		for _, r := range rows {
			all = append(all, Bridge{
				Name: r.text("name"), Datapath: r.text("datapath_type"), FailMode: r.text("fail_mode"),
				DatapathID: r.text("datapath_id"), ExternalIDs: r.mapping("external_ids"),
			})
		}
	}
	return all, nil
}

// condition selects rows by external_ids.
func condition(key, value string) string {
	if value == "" {
		return "external_ids:" + key + `!=""`
	}
	return "external_ids:" + key + "=" + quote(value)
}

// AwaitBridge waits until ovs-vswitchd has made the bridge that OVSDB has (pitfall: in
// OVSDB and nowhere else), at most [Deadline].
func (c *Client) AwaitBridge(ctx context.Context, name string) (Bridge, error) {
	var b Bridge
	err := await(ctx, func(ctx context.Context) (done bool, err error) {
		b, err = c.Bridge(ctx, name)
		return err == nil && b.DatapathID != "", err
	})
	if err != nil {
		return b, errs.New(errs.Transient, "bridge "+name, "wait for ovs-vswitchd to make it", err,
			"look into /var/log/openvswitch/ovs-vswitchd.log")
	}
	return b, nil
}

// await polls until done, an error other than "not found", or the deadline.
func await(ctx context.Context, look func(context.Context) (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, Deadline)
	defer cancel()
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for {
		done, err := look(ctx)
		if done || (err != nil && !isNotFound(err)) {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			if err != nil {
				return err
			}
			return ctx.Err()
		}
	}
}

// HostDatapath gives the datapath type for bridges made on this host: "system" where the
// kernel has the openvswitch module loaded, else "netdev".
func (c *Client) HostDatapath() string {
	// The module registers this generic netlink family; OVSDB lists "system" either way.
	if _, err := netlink.GenlFamilyGet("ovs_datapath"); err == nil {
		return DatapathSystem
	}
	return DatapathNetdev
}

// Datapath gives the datapath type of a bridge. errors.Is errs.ErrNotFound when there is
// none of that name.
func (c *Client) Datapath(ctx context.Context, bridge string) (string, error) {
	b, err := c.Bridge(ctx, bridge)
	if err != nil {
		return "", err
	}
	if b.Userspace() {
		return DatapathNetdev, nil
	}
	return DatapathSystem, nil
}

// Userspace tells whether the bridge runs on the userspace datapath, where offloaded
// checksums are never filled in, so that guests and gateways must not offload them.
func (b Bridge) Userspace() bool { return strings.EqualFold(b.Datapath, DatapathNetdev) }
