// Package e2e runs burrow as a person does: the built programs, a hypervisor of its own
// (test/lab), real guests, real playbooks. Nothing in the path is replaced.
package e2e
