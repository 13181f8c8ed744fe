// Package build makes disk images from a distribution's packages, for sites without
// internet and for catalogue entries that cannot be reached.
//
//	recipe (debian/…) ──▶ mmdebstrap ──▶ root folder ──▶ mke2fs -d ──▶ raw disk ──▶ qemu-img ──▶ qcow2
//	host's mirrors   ──┘  (own mount and pid namespace)   GPT, GRUB written into it
//
// Nothing is mounted outside a namespace that dies with the build, no loop device is
// used, and all that a build writes stands in one folder that the next build removes
// when its owner is gone. The result is complete or absent.
package build
