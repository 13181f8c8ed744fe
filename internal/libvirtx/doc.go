// Package libvirtx talks to libvirtd, and is the only package with cgo in it.
//
//	activities/volume ─┐                     ┌─ keyed locks: one call at a time for each domain and volume
//	activities/domain ─┼─▶ Connection.do ────┼─ deadline on each call (libvirt's own calls know no context)
//	gateway, events   ─┘        │            └─ errors translated once, into errs classes and sentinels
//	                            ▼
//	                     one shared virConnect, keepalive, opened again after libvirtd restarts
//
// What goes in and comes out are plain values and libvirtxml types, so that the
// packages above need neither cgo nor this package to be compiled.
//
// A call whose caller gave up goes on inside libvirtd. Its object stays locked in
// this process until libvirtd has really answered, so that an undo which follows a
// cancelled "define" cannot look before the domain is there and call it gone.
//
// Build with -tags libvirt_dlopen: the library is then looked for at run time, and
// the binary also runs where there is none; calls fail there with an Operator error.
package libvirtx
