// Package guest waits until a server's guest is as ready as its manifest asks.
//
//	running      the domain runs: nothing to wait for
//	ssh          tcp ─▶ banner ─▶ login (management key, pinned host key, a command runs)
//	cloud-init   … ─▶ cloud-init has finished: done, degraded (a warning) or error (for a person)
//
// Every address of the server is tried at once, each dialled inside its network's
// namespace; the first one that lets us in is the answer. The heartbeat carries the
// stage and the console's last line.
package guest
