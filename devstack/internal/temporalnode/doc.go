// Package temporalnode runs all four Temporal services in this process on one
// SQLite file: the store of a single machine.
//
//	frontend ──┬── history (1 shard) ──┐
//	(mTLS)     ├── matching            ├──▶ <dir>/temporal.db   WAL, synchronous=full, one connection
//	           └── system worker       │     <dir>/schema.json   the server version that made it
//	                                   ┘
//
// Every listener is on the loopback interface and, given certificates, asks its
// peer for one, the inner services too. Hosts are static: no gossip ring, no extra ports.
// SQLite has no schema versions upstream, so schema.go keeps the version beside
// the file and decides what to do with a file made by another server version.
package temporalnode
