// Package ansible checks playbooks before anything is built, and runs them when the
// servers are ready.
//
//	Check  bundle ─▶ run folder ─▶ ansible-playbook --syntax-check      nothing is reached
//	Run    reap what an earlier attempt left ─▶ run folder ─▶ sockets ─▶ ansible-playbook ─▶ log to the blob store
//	         failed task: again, only the failed hosts, as often as the manifest says; then a person decides
//	         unreachable: transient     cancelled, out of time: killed, and proven gone
//	Reap   no process of a server's runs is alive, no folder of one is left
//
// How a run is built and contained is internal/ansiblex's part; here is what an
// operation needs to know about it: progress, classes of failure, the log.
package ansible
