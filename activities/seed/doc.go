// Package seed writes the medium a guest configures itself from at its first boot.
//
//	keys (secret store) ─┐
//	users' keys, ports ──┼─▶ cloudinit.Render ──▶ <dir>/<uid>-<hash>.iso ──▶ CD-ROM of the domain
//	user's cloudInit ────┘
//
// The name holds the owner's uid and a hash of the content: other content is another
// file, so a seed in use is never written over, and removal finds every seed of a server
// without a list. A seed holds the guest's private host key: it is readable by root
// alone, and libvirt hands it to QEMU's user while the guest runs.
package seed
