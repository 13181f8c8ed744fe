// Package bench measures what the README promises, with the built programs, in a
// hypervisor of its own. Machines are noisy: what counts are the ratios to plain tools
// (qemu-img, virsh, ovs-vsctl by hand) that run beside it in the same process.
package bench
