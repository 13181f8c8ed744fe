// Package accel finds out whether guests can use KVM here, by booting one.
//
//	/dev/kvm opens? ─no──▶ tcg ("no /dev/kvm")
//	      │yes
//	qemu -accel kvm + a boot sector:  'A' to port 0xe9, count to 50 million, 'B', exit
//	      │
//	'B' within a second after 'A' ──▶ kvm, else tcg with the reason
//
// A device node that exists, and a libvirt that lists KVM, prove nothing: nested and
// para-virtual hosts have both, and emulate every single instruction of the guest.
// Counting is what tells them apart.
//
// The package also looks after the permissions of /dev/kvm: where QEMU's user may not
// open it, libvirt probes QEMU again at each define and start, a minute and a half each.
package accel
