package ovsx

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"burrow.dev/burrow/internal/errs"
)

// Port is a port with its one interface, as OVSDB has them.
type Port struct {
	Name   string
	Bridge string // only from [Client.Port] and [Client.AwaitPort]
	// Userspace tells that the bridge runs on the userspace datapath; as Bridge.
	Userspace bool
	Tag       int
	Trunks    []int
	VLANMode  string
	// OFPort is the OpenFlow number; 0 not yet assigned, -1 failed (Error says why).
	OFPort int
	// LinkUp tells that the device has a link.
	LinkUp bool
	Error  string
	// ExternalIDs are the interface's.
	ExternalIDs map[string]string
}

// OwnedBy tells whether a port is that of a server's NIC: by our mark, or before there is
// one by libvirt's, which holds the guest's MAC.
func (p Port) OwnedBy(serverUID, mac string) bool {
	if owner := p.ExternalIDs[KeyServer]; owner != "" {
		return owner == serverUID
	}
	return p.ExternalIDs[KeyAttachedMAC] == mac
}

const (
	portColumns      = "--columns=name,tag,trunks,vlan_mode"
	interfaceColumns = "--columns=name,ofport,link_state,error,external_ids"
)

// Port looks a port up by name. errors.Is errs.ErrNotFound when there is none.
func (c *Client) Port(ctx context.Context, name string) (Port, error) {
	object := "port " + name
	out, err := c.vsctl(ctx, "port-to-br", name,
		"--", portColumns, "find", "Port", "name="+quote(name),
		"--", interfaceColumns, "find", "Interface", "name="+quote(name),
		"--", "--columns=name,datapath_type", "list", "Bridge")
	if err != nil {
		return Port{}, translate(object, "look up", err)
	}
	bridge, rest, _ := strings.Cut(string(out), "\n")
	tables, err := parseTables([]byte(rest))
	if err != nil {
		return Port{}, errs.NewTransient(object, "look up", err)
	}
	if len(tables) != 3 || len(tables[0]) != 1 || len(tables[1]) != 1 {
		return Port{}, errs.NewTransient(object, "look up", fmt.Errorf("%w: a port and its one interface", errs.ErrNotFound))
	}
	p := portOf(tables[1][0])
	p.Bridge = strings.TrimSpace(bridge)
	for _, b := range tables[2] {
		if b.text("name") == p.Bridge {
			p.Userspace = Bridge{Datapath: b.text("datapath_type")}.Userspace()
		}
	}
	r := tables[0][0]
	p.Tag, p.Trunks, p.VLANMode = r.number("tag"), r.numbers("trunks"), r.text("vlan_mode")
	return p, nil
}

// Ports lists the interfaces that carry a mark; key alone (value "") lists any value of
// it. VLANs and bridge are not filled.
func (c *Client) Ports(ctx context.Context, key, value string) ([]Port, error) {
	object := "ports of " + key + " " + value
	out, err := c.vsctl(ctx, interfaceColumns, "find", "Interface", condition(key, value))
	if err != nil {
		return nil, translate(object, "look up", err)
	}
	tables, err := parseTables(out)
	if err != nil {
		return nil, errs.NewTransient(object, "look up", err)
	}
	var all []Port
	for _, rows := range tables {
		for _, r := range rows {
			all = append(all, portOf(r))
		}
	}
	return all, nil
}

func portOf(r row) Port {
	return Port{
		Name: r.text("name"), OFPort: r.number("ofport"), LinkUp: r.text("link_state") == "up",
		Error: r.text("error"), ExternalIDs: r.mapping("external_ids"),
	}
}

// AwaitPort waits until a port has its OpenFlow number and its link is up, at most
// [Deadline]; the error then says what Open vSwitch says of it.
func (c *Client) AwaitPort(ctx context.Context, name string) (Port, error) {
	var p Port
	err := await(ctx, func(ctx context.Context) (done bool, err error) {
		p, err = c.Port(ctx, name)
		return err == nil && p.OFPort > 0 && p.LinkUp, err
	})
	if err != nil {
		state := fmt.Errorf("ofport %d, link up %t", p.OFPort, p.LinkUp)
		if p.Error != "" {
			state = fmt.Errorf("ofport %d: %s", p.OFPort, p.Error)
		}
		return p, errs.NewTransient("port "+name, "wait until it is up", errors.Join(err, state))
	}
	return p, nil
}

func isNotFound(err error) bool { return errors.Is(err, errs.ErrNotFound) }
