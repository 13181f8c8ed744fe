// Package ansiblex runs ansible-playbook as an unprivileged user whose connections to
// servers all go through this process. It is the only importer of go-ansible.
//
//	<runs>/<run id>/          root; the user may pass, not write
//	├── run.json              who runs here: pid, start time, servers (for Reap)
//	├── log.txt events.jsonl  what Ansible prints, and our callback's events, cleaned
//	├── dial.sock agent.sock  served by this process: connections and signatures
//	├── etc/                  our inventory, known_hosts, public keys, plugin, variables
//	├── galaxy/               roles and collections, while ansible-galaxy installs them
//	└── work/                 the user's: bundle/ (its folder), home/ tmp/ cp/ facts/
//
//	ansible-playbook ─▶ ssh ─▶ burrow dial ─▶ dial.sock ─▶ (this process) ─▶ the server's network namespace
//	                     └──▶ agent.sock: the private key never leaves this process
//
// A run lives in a PID namespace of its own where the kernel lets us make one: when
// ansible-playbook ends or is killed, so does everything it ever started, SSH masters
// and daemons of a hostile playbook included. Elsewhere the process group and the
// BURROW_RUN mark in each environment find them.
package ansiblex
