// Package inguest is a playbook that runs inside a guest: what the guest gets for it, and
// what burrow reads of it there.
//
//	/var/lib/burrow-play/<run>/   root's; in the seed, or sent over ssh
//	├── run run.conf              the runner and what it runs
//	├── inventory.yaml vars.json  the server itself, connection local
//	├── content.tar.gz            the playbook's folder, when it is not pulled by git
//	├── state.json                how it stands, with the boot in which it does
//	└── log.txt events-<try>.jsonl
//
// All that is read is the guest's, hence anybody's: it is bounded, parsed strictly, and
// cleaned by those who show it.
package inguest
