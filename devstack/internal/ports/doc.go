// Package ports asks whether a TCP address can be listened on before anything is
// started, and says who holds it when not: some of the servers started here end
// the whole process when their listener fails.
//
//	address ──listen+close──▶ free
//	            │ EADDRINUSE
//	            ▼
//	/proc/net/tcp{,6} ──inode──▶ /proc/<pid>/fd ──▶ "held by mysqld (pid 812)"
package ports
