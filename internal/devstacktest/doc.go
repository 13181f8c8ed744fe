// Package devstacktest gives tests a real etcd and a real Temporal: it starts
// bin/burrow-devstack as a process, waits for its readiness report and stops it by
// process id when the test ends.
//
//	test ──start──▶ burrow-devstack --ready-file ──report──▶ addresses
//	  └─ stdin pipe: a test that dies takes the process with it
//
// The binary is $BURROW_DEVSTACK, or bin/burrow-devstack of this repository.
package devstacktest
