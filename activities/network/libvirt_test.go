package network_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"burrow.dev/burrow/activities/network"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/internal/ovsx"
	"burrow.dev/burrow/manifest"
)

// domain is a guest without a disk, which QEMU starts with its CPUs paused.
const domain = `<domain type='qemu'>
  <name>%[1]s</name><memory unit='MiB'>64</memory><vcpu>1</vcpu>
  <os><type arch='x86_64' machine='q35'>hvm</type></os>
  <devices>
    <interface type='bridge'>
      <source bridge='%[2]s'/><mac address='%[3]s'/><target dev='%[4]s'/><model type='virtio'/>
      <virtualport type='openvswitch'/>
    </interface>
  </devices>
</domain>`

func TestAPausedDomainIsWiredAndItsEndLeavesNothing(t *testing.T) {
	s := newSite(t)
	net := s.network(t, "db-net", isolated, "")
	db := s.newGuest(t, "db", net, func(p *manifest.Port) { p.VLANs = []int{120} })
	p := db.port()
	sh(t, "ip link delete "+p.Device) // the tap will be QEMU's
	_, err := s.Ensure(t.Context(), network.EnsureIn{Server: db.server, Ports: db.ports})
	require.NoError(t, err)
	before := inventory(t)

	xml := filepath.Join(t.TempDir(), "domain.xml")
	require.NoError(t, os.WriteFile(xml, fmt.Appendf(nil, domain, "db", p.Bridge, p.MAC, p.Device), 0o600))
	sh(t, "virsh -q define "+xml+"; virsh -q start --paused db")
	t.Cleanup(func() { _ = exec.Command("sh", "-c", "virsh destroy db; virsh undefine db").Run() })
	_, err = s.Wire(t.Context(), network.WireIn{Server: db.server, Ports: db.ports})
	require.NoError(t, err)

	port, err := s.sw.Port(t.Context(), p.Device)
	require.NoError(t, err)
	require.Equal(t, 120, port.Tag)
	require.Positive(t, port.OFPort)
	require.True(t, port.LinkUp)
	require.Equal(t, db.server.UID, port.ExternalIDs[ovsx.KeyServer])
	require.NotEmpty(t, port.ExternalIDs["vm-id"], "libvirt's marks stay")
	require.Equal(t, "paused", sh(t, "virsh -q domstate db"))

	// The undo list: unwire, then the domain.
	_, err = s.Unwire(t.Context(), network.UnwireIn{Server: db.server, Ports: db.ports})
	require.NoError(t, err)
	sh(t, "virsh -q destroy db; virsh -q undefine db")
	eventually(t, func() bool { _, err := s.sw.Port(t.Context(), p.Device); return err != nil })
	require.Equal(t, before, inventory(t))

	// And a domain that ended by itself before it was unwired.
	sh(t, "virsh -q define "+xml+"; virsh -q start --paused db")
	_, err = s.Wire(t.Context(), network.WireIn{Server: db.server, Ports: db.ports})
	require.NoError(t, err)
	sh(t, "virsh -q destroy db; virsh -q undefine db")
	_, err = s.sw.Port(t.Context(), p.Device)
	require.ErrorIs(t, err, errs.ErrNotFound)
	_, err = s.Unwire(t.Context(), network.UnwireIn{Server: db.server, Ports: db.ports})
	require.NoError(t, err)
	require.Equal(t, before, inventory(t))
}
