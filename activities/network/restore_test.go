package network_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"burrow.dev/burrow/activities/network"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/internal/hostnet"
	"burrow.dev/burrow/internal/ovsx"
	"burrow.dev/burrow/manifest"
)

const ovsctl = "/usr/share/openvswitch/scripts/ovs-ctl --no-mlockall --system-id=random "

func TestEverythingComesBackFromTheRecords(t *testing.T) {
	cases := map[string]struct {
		disaster string
		deviceIs func(t *testing.T, g *guest) // what became of the guest's device
	}{
		"nothing happened":    {"true", nil},
		"switch killed":       {"kill -9 $(cat /run/openvswitch/ovs-vswitchd.pid); " + ovsctl + "restart", nil},
		"switch restarted":    {ovsctl + "stop; " + ovsctl + "start", nil},
		"namespace deleted":   {"ip netns delete bw-db-net", nil},
		"name server killed":  {"kill -9 $(cat $RUN/*/dnsmasq.pid)", nil},
		"firewall flushed":    {"nft flush ruleset; ip netns exec bw-db-net nft flush ruleset", nil},
		"uplink deleted":      {"ip link delete $UPLINK; sysctl -qw net.ipv4.ip_forward=0", nil},
		"run folder emptied":  {"rm -rf $RUN", nil},
		"database emptied":    {ovsctl + "stop; rm -f /etc/openvswitch/conf.db; " + ovsctl + "start", nil},
		"power cut":           {powerCut, replug},
		"power cut, no state": {powerCut + "; rm -f /etc/openvswitch/conf.db", replug},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			outside(t)
			s := newSite(t)
			net := s.network(t, "db-net", nil, "")
			db := s.newGuest(t, "db", net, nil)
			s.provision(t, db)
			s.record(db, manifest.PhaseRunning)
			serve(t, "outside", "203.0.113.9:80")
			serve(t, db.ns, "172.16.90.2:22")
			works := func() {
				t.Helper()
				db.reaches(t, "203.0.113.9:80")
				found, err := db.lookup(t, "db.db-net")
				require.NoError(t, err)
				require.Equal(t, []string{"172.16.90.2"}, found)
				conn, err := s.DialNetwork(t.Context(), "db-net", "172.16.90.2:22")
				require.NoError(t, err)
				readAll(t, conn)
			}
			works()

			t.Setenv("RUN", s.runDir)
			t.Setenv("UPLINK", hostnet.UplinkDevice(net.Metadata.UID))
			t.Setenv("DEVICE", db.port().Device)
			_ = exec.Command("sh", "-c", tc.disaster).Run()
			if name == "power cut, no state" || name == "power cut" {
				sh(t, ovsctl+"start")
			}
			s.restart(t)
			s.restore(t)
			if tc.deviceIs != nil {
				tc.deviceIs(t, db)
				db.attach(t)
				_, err := s.Wire(t.Context(), network.WireIn{Server: db.server, Ports: db.ports})
				require.NoError(t, err)
			}
			works()
		})
	}
}

// powerCut leaves what a disk keeps: OVSDB's file.
const powerCut = ovsctl + `stop
	kill -9 $(cat $RUN/*/dnsmasq.pid)
	ip link delete $UPLINK
	ip netns delete bw-db-net
	ip link delete $DEVICE
	nft flush ruleset
	sysctl -qw net.ipv4.ip_forward=0
	rm -rf $RUN`

// replug is the guest started again.
func replug(t *testing.T, g *guest) {
	t.Helper()
	_, err := os.Stat("/sys/class/net/" + g.port().Device)
	require.True(t, os.IsNotExist(err))
	g.plug(t)
	g.configure(t)
}

func TestPortsWhoseDeviceIsGoneAreTakenOff(t *testing.T) {
	s := newSite(t)
	net := s.network(t, "db-net", isolated, "")
	db := s.newGuest(t, "db", net, nil)
	s.provision(t, db)
	sh(t, "ip link delete "+db.port().Device)
	s.restore(t)
	_, err := s.sw.Port(t.Context(), db.port().Device)
	require.ErrorIs(t, err, errs.ErrNotFound)
}

func TestNetworksThatNobodyHereRefersToStayAway(t *testing.T) {
	s := newSite(t)
	net := s.network(t, "elsewhere", nil, "")
	s.restore(t)
	_, err := s.sw.Bridge(t.Context(), net.Status.Network.Bridge)
	require.ErrorIs(t, err, errs.ErrNotFound)
	require.NoDirExists(t, s.runDir)
}

// TestWhatAnOperationHasUnwiredIsNotWiredAgain: its device is still there, since the domain
// goes after the wire.
func TestWhatAnOperationHasUnwiredIsNotWiredAgain(t *testing.T) {
	for phase, wired := range map[manifest.Phase]bool{
		manifest.PhaseDeleting: false, manifest.PhaseProvisioning: false, manifest.PhaseFailed: false, manifest.PhaseRunning: true,
	} {
		t.Run(string(phase), func(t *testing.T) {
			s := newSite(t)
			net := s.network(t, "db-net", isolated, "")
			db := s.newGuest(t, "db", net, nil)
			s.provision(t, db)
			s.record(db, phase)
			_, err := s.Unwire(t.Context(), network.UnwireIn{Server: db.server, Ports: db.ports})
			require.NoError(t, err)
			s.restore(t)
			names := filepath.Join(s.runDir, net.Metadata.UID, "hosts", db.server.UID)
			_, err = s.sw.Port(t.Context(), db.port().Device)
			if wired {
				require.NoError(t, err)
				require.FileExists(t, names)
			} else {
				require.ErrorIs(t, err, errs.ErrNotFound)
				require.NoFileExists(t, names)
			}
		})
	}
}

func TestAServerThatIsOffGetsItsNamesWithItsNextStart(t *testing.T) {
	s := newSite(t)
	net := s.network(t, "db-net", isolated, "")
	db := s.newGuest(t, "db", net, nil)
	s.provision(t, db)
	s.record(db, manifest.PhaseStopped)
	sh(t, "ip link delete "+db.port().Device)
	_, err := s.Unwire(t.Context(), network.UnwireIn{Server: db.server, Ports: db.ports})
	require.NoError(t, err)
	s.restore(t)
	require.NoFileExists(t, filepath.Join(s.runDir, net.Metadata.UID, "hosts", db.server.UID))
}

func TestANewWorkerAdoptsTheNameServerOfTheOld(t *testing.T) {
	s := newSite(t)
	net := s.network(t, "db-net", isolated, "")
	db := s.newGuest(t, "db", net, nil)
	s.provision(t, db)
	before := processes("dnsmasq")
	require.Len(t, before, 1)
	s.restart(t)
	s.restore(t)
	require.Equal(t, before, processes("dnsmasq"))

	// Without its pid file it is found by its command line.
	require.NoError(t, os.Remove(s.runDir+"/"+net.Metadata.UID+"/dnsmasq.pid"))
	s.restore(t)
	require.Equal(t, before, processes("dnsmasq"))

	// With another configuration it is started anew, and there is still one.
	rec := must(s.records.Get(t.Context(), manifest.KindNetwork, "db-net"))
	rec.Spec = []byte(`{"dhcp":true}`)
	s.records.put(rec)
	s.restore(t)
	after := processes("dnsmasq")
	require.Len(t, after, 1)
	require.NotEqual(t, before, after)

	// A process that has its pid and is something else is not hit.
	bystander := exec.Command("sleep", "1000")
	require.NoError(t, bystander.Start())
	defer func() {
		_ = bystander.Process.Kill()
		_ = bystander.Wait()
	}()
	require.NoError(t, unix.Kill(after[0], unix.SIGKILL))
	eventually(t, func() bool { return len(processes("dnsmasq")) == 0 })
	require.NoError(t, os.WriteFile(s.runDir+"/"+net.Metadata.UID+"/dnsmasq.pid", []byte(itoa(bystander.Process.Pid)), 0o644))
	_, err := s.Release(t.Context(), network.ReleaseIn{Server: db.server, Ports: db.ports})
	require.NoError(t, err)
	require.NoError(t, bystander.Process.Signal(unix.Signal(0)))
}

func TestWhatBurrowDidNotMakeIsRefusedAndLeftAlone(t *testing.T) {
	cases := map[string]struct{ make, look, clean string }{
		"bridge":          {"ovs-vsctl add-br br-db-net -- set bridge br-db-net datapath_type=netdev", "ovs-vsctl --columns=fail_mode,external_ids,ports list bridge br-db-net", "ovs-vsctl del-br br-db-net"},
		"bridge of Linux": {"ip link add br-db-net type veth peer name foreign", "ip -br link show br-db-net", "ip link del br-db-net"},
		"namespace":       {"ip netns add bw-db-net", "ip netns exec bw-db-net ip -br addr; ip netns exec bw-db-net nft list ruleset", "ip netns del bw-db-net"},
		"device":          {"ip link add $GATEWAY type veth peer name foreign", "ip -br link show $GATEWAY", "ip link del $GATEWAY"},
		"table":           {"nft add table inet burrow", "nft list table inet burrow", "nft delete table inet burrow"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			net := s.network(t, "db-net", nil, "")
			t.Setenv("GATEWAY", hostnet.GatewayDevice(net.Metadata.UID))
			db := s.newGuest(t, "db", net, nil)
			sh(t, tc.make)
			before := sh(t, tc.look)

			_, err := s.Ensure(t.Context(), network.EnsureIn{Server: db.server, Ports: db.ports})
			require.ErrorIs(t, err, errs.ErrNotManaged)
			require.Equal(t, errs.Permanent, errs.ClassOf(err))
			require.Contains(t, err.Error(), "db-net")
			require.Equal(t, before, sh(t, tc.look))
			if name != "table" {
				_, err = s.Release(t.Context(), network.ReleaseIn{Server: db.server, Ports: db.ports})
				require.NoError(t, err)
				require.Equal(t, before, sh(t, tc.look), "undo does not touch it either")
			}
			sh(t, tc.clean)
			_, err = s.Release(t.Context(), network.ReleaseIn{Server: db.server, Ports: db.ports})
			require.NoError(t, err)
		})
	}
}

func TestAForeignPortOfAGuestsNameIsRefusedAndLeftAlone(t *testing.T) {
	s := newSite(t)
	net := s.network(t, "db-net", isolated, "")
	db := s.newGuest(t, "db", net, nil)
	_, err := s.Ensure(t.Context(), network.EnsureIn{Server: db.server, Ports: db.ports})
	require.NoError(t, err)
	p := db.port()
	for _, mark := range []string{"external_ids:attached-mac='\"52:54:00:ff:ff:ff\"'", "external_ids:" + ovsx.KeyServer + "=somebody-else"} {
		sh(t, "ovs-vsctl add-port "+p.Bridge+" "+p.Device+" tag=9 -- set interface "+p.Device+" "+mark)
		_, err = s.Wire(t.Context(), network.WireIn{Server: db.server, Ports: db.ports})
		require.ErrorIs(t, err, errs.ErrNotManaged)
		require.Equal(t, errs.Permanent, errs.ClassOf(err))
		_, err = s.Unwire(t.Context(), network.UnwireIn{Server: db.server, Ports: db.ports})
		require.NoError(t, err)
		port, err := s.sw.Port(t.Context(), p.Device)
		require.NoError(t, err)
		require.Equal(t, 9, port.Tag)
		sh(t, "ovs-vsctl del-port "+p.Device)
	}
}

func TestANetworkMadeAnewTakesOverTheBridgeOfTheOld(t *testing.T) {
	s := newSite(t)
	old := s.network(t, "db-net", isolated, "")
	db := s.newGuest(t, "db", old, nil)
	s.provision(t, db)
	fresh := s.network(t, "db-net", isolated, "")
	web := s.newGuest(t, "web", fresh, nil)
	_, err := s.Ensure(t.Context(), network.EnsureIn{Server: web.server, Ports: web.ports})
	require.ErrorIs(t, err, errs.ErrBusy, "while servers refer to it")
	_, err = s.Ensure(t.Context(), network.EnsureIn{Server: db.server, Ports: db.ports})
	require.ErrorIs(t, err, errs.ErrConflict, "the old one's servers do not get the new one")

	must(s.records.DropReference(t.Context(), old.Metadata.UID, host, db.server.UID))
	s.provision(t, web)
	require.True(t, echoes(t, web.ns, "172.16.90.1"))
}
