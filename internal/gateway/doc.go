// Package gateway is the data plane: what the command line and Ansible need of a
// worker and what is neither an operation nor history.
//
//	burrow get/watch ──────┐                        ┌── Records   etcd records, watched
//	burrow apply (bundle) ─┤   gRPC                 ├── Blobs     bundles
//	burrow secret ─────────┤                        ├── Secrets   set, listed, never given
//	burrow network ────────┤                        ├── Addresses pools in etcd
//	burrow logs ───────────┼── unix socket, 0660 ───┼── RunLogs   playbook runs
//	burrow console ────────┤   root:burrow;         ├── Consoles  serial consoles
//	burrow ssh, dial ──────┤   TCP with mutual TLS  ├── Dialer    inside a network's namespace
//	ssh-agent protocol ────┘                        └── Keys      management keys, never sent
//
// A stream that is read slowly holds back only itself: HTTP/2 flow control bounds what
// is in flight, and a watch keeps the latest state of each record, not every change.
package gateway
