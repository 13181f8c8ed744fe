// Package domain runs servers as libvirt domains.
//
//	StartIn ──▶ look up by UUID ──┬─ ours and active ──▶ adopted
//	                              ├─ its start goes on ▶ ErrBusy, asked again
//	                              ├─ ours and off ─────▶ define again, start paused
//	                              ├─ none, name free ──▶ define, start paused
//	                              └─ not ours ─────────▶ ErrNotManaged, untouched
//
// A domain is ours when it has the UUID that follows from the server's uid and carries the
// burrow element in its metadata. It starts with its CPUs stopped: not one packet leaves
// it before its ports are wired; Resume lets it run. libvirt's own autostart stays off:
// at boot the host worker starts servers, wired, in the same way.
//
// The serial console is a pty (for people, one at a time) that virtlogd copies into
// <ConsoleDir>/<uid>.log (for whoever waits for the guest to become ready).
package domain
