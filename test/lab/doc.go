// Package lab gives tests a hypervisor of their own: a host made of namespaces, with
// its own network, its own /run, Open vSwitch, libvirt and (if asked) a way to the
// Internet. The machine's network, daemons and files are not touched, and nothing of
// the host outlives it.
//
//	go test / lab CMD            outside: supervises, runs slirp4netns
//	   │ clone: mount net uts ipc pid            │ tap "internet"
//	   ▼                                         ▼
//	init (pid 1)  ── mounts ── ovs-ctl start ── virtlogd, libvirtd
//	   │ fork                                      (all in the pid namespace)
//	   ▼
//	the test binary again, or CMD
//
// The host ends when its init does: the kernel then kills every process of the pid
// namespace, and with the last one go the network devices, the mounts and the tmpfs.
// Init dies with its supervisor (PR_SET_PDEATHSIG), so this holds after kill -9 too.
//
// A package whose tests need a host says so in TestMain:
//
//	func TestMain(m *testing.M) { lab.Main(m, lab.OVS) }
package lab
