// Package supervise keeps a few processes running for one data directory: in order,
// restarted when they die, found again after their supervisor was killed.
//
//	Run ── flock up.lock (second one: refused, names the first)
//	 ├─ part "devstack": spawn ── record pid+start time ── let it go ── Ready? ── watch ── restart
//	 ├─ part "worker":   after the one before is ready
//	 ├─ logs: rotated by size
//	 └─ ctx ends: SIGTERM in reverse order, each given its time, nothing left
//
//	killed supervisor: parts live on; the next Run reads run/parts.json and
//	adopts what still is the wanted program, ends what is not.
//
// A process is known by pid, start time and boot, never by pid, port or name alone.
// A part is recorded before its program begins (a shell waits for the word to go
// on), so there is no moment at which a part runs that nobody knows of.
package supervise
