package ovsx

import (
	"context"
	"fmt"
	"strings"

	"github.com/digitalocean/go-openvswitch/ovs"
)

// burstMilliseconds is how long a guest may send at full speed before its rate holds:
// long enough for TCP to reach the rate.
const burstMilliseconds = 100

// setMeter gives a port's meter its rate. Meters work on both datapaths, where an
// interface's ingress policing does nothing on the userspace one: that reads packets
// before the kernel's policer does. A port's meter has its OpenFlow number.
//
// Deleting a meter deletes the flows that use it, so the flows come after.
func (c *Client) setMeter(ctx context.Context, bridge string, ofport, mbps int) error {
	object, action := "bridge "+bridge, "set the rate of a port"
	if err := c.deleteMeter(ctx, bridge, ofport); err != nil {
		return err
	}
	kbps := mbps * 1000
	band := fmt.Sprintf("meter=%d,kbps,burst,band=type=drop,rate=%d,burst_size=%d", ofport, kbps, max(kbps*burstMilliseconds/1000, 1))
	_, err := run(ctx, nil, "ovs-ofctl", timeoutFlag(), "-OOpenFlow13", "add-meter", bridge, band)
	return translate(object, action, err)
}

// deleteMeter deletes a port's meter; none is success.
func (c *Client) deleteMeter(ctx context.Context, bridge string, ofport int) error {
	_, err := run(ctx, nil, "ovs-ofctl", timeoutFlag(), "-OOpenFlow13", "del-meter", bridge, fmt.Sprintf("meter=%d", ofport))
	if err != nil && strings.Contains(err.Error(), "OFPMMFC_UNKNOWN_METER") {
		return nil
	}
	return translate("bridge "+bridge, "delete the rate of a port", err)
}

// meter is the action that drops what is above the rate; go-openvswitch has none.
type meter int

var _ ovs.Action = meter(0)

// MarshalText gives the action as ovs-ofctl reads it.
func (m meter) MarshalText() ([]byte, error) { return fmt.Appendf(nil, "meter:%d", int(m)), nil }

// GoString gives the action as Go source.
func (m meter) GoString() string { return fmt.Sprintf("meter(%d)", int(m)) }
