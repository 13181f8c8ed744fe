package faults

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"burrow.dev/burrow/activities"
	"burrow.dev/burrow/manifest"
)

// stranger is something of the same name that burrow did not make.
type stranger struct {
	what   string
	before string // the activity before which it appears, at its first call
	name   func(c *subject) string
	make   func(name string) error
	// there says whether it is still exactly as it was made.
	there  func(name string) error
	remove func(name string) error
}

const foreignDomain = `<domain type='qemu'><name>%s</name><uuid>11111111-2222-4333-8444-555555555555</uuid><memory unit='MiB'>16</memory><vcpu>1</vcpu><os><type arch='x86_64'>hvm</type></os></domain>`

func strangers(pool string) []stranger {
	return []stranger{
		{
			what: "domain", before: activities.DomainStart, name: func(c *subject) string { return c.name },
			make: func(name string) error {
				file := filepath.Join(os.TempDir(), name+".xml")
				defer os.Remove(file)
				return errors.Join(writeFile(file, fmt.Sprintf(foreignDomain, name)), shell("virsh -q -c qemu:///system define "+file))
			},
			there: func(name string) error {
				return shell("virsh -q -c qemu:///system domuuid " + name + " | grep -q 11111111-2222")
			},
			remove: func(name string) error { return shell("virsh -q -c qemu:///system undefine " + name) },
		},
		{
			what: "volume", before: activities.VolumeBuild,
			name: func(c *subject) string { return c.name + "-" + c.last.Metadata.UID[:8] + "-boot.qcow2" },
			make: func(name string) error { return writeFile(filepath.Join(pool, name), "somebody's data") },
			there: func(name string) error {
				return shell("grep -q somebody " + filepath.Join(pool, name))
			},
			remove: func(name string) error { return os.Remove(filepath.Join(pool, name)) },
		},
		{
			what: "OVS port", before: activities.DomainStart,
			name: func(c *subject) string { return manifest.DeviceName(c.last.Metadata.UID, c.nics[0].Name) },
			make: func(name string) error {
				return shell("ovs-vsctl --may-exist add-br foreign -- set bridge foreign datapath_type=netdev -- add-port foreign " + name + " -- set interface " + name + " type=internal external_ids:owner=somebody")
			},
			there: func(name string) error {
				return shell("ovs-vsctl get interface " + name + " external_ids:owner | grep -q somebody && ovs-vsctl port-to-br " + name + " | grep -q foreign")
			},
			remove: func(name string) error { return shell("ovs-vsctl del-br foreign") },
		},
	}
}

func shell(script string) error {
	out, err := exec.Command("sh", "-c", script).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w: %s", script, err, out)
	}
	return nil
}

// TestUndoLeavesAlonePeoplesThingsOfTheSameNames puts something of the very name that
// burrow would use in the way: the operation fails and names it, and its undo does not
// touch it.
func TestUndoLeavesAlonePeoplesThingsOfTheSameNames(t *testing.T) {
	f := smallField(t, 1)
	for _, s := range strangers(f.conf.Worker.PoolDir()) {
		t.Run(s.what, func(t *testing.T) {
			c := f.subject(manifest.KindServer, f.slots[0])
			require.NoError(t, f.orders.give(c.ref(), s.before, order{Deed: waitBefore, Times: 1}))
			f.await(func(ctx context.Context) error {
				run, err := provision(ctx, c)
				if err != nil {
					return err
				}
				if err := c.reached(ctx, s.before, 1); err != nil {
					return err
				}
				if _, _, err := c.record(ctx); err != nil {
					return err
				}
				name := s.name(c)
				if err := errors.Join(s.make(name), f.orders.release(c.ref(), s.before)); err != nil {
					return err
				}
				end, err := c.finish(ctx, run)
				if err != nil {
					return err
				}
				if end == nil || !strings.Contains(end.Error(), name) {
					return fmt.Errorf("it should have failed and named %s: %w", name, end)
				}
				t.Logf("%v", end)
				if err := s.there(name); err != nil {
					return fmt.Errorf("the %s is not as it was: %w", s.what, err)
				}
				if err := c.remove(ctx); err != nil {
					return err
				}
				if err := s.there(name); err != nil {
					return fmt.Errorf("after the delete, the %s is not as it was: %w", s.what, err)
				}
				return s.remove(name)
			})
			f.clean()
		})
	}
}
