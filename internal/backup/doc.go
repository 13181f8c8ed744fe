// Package backup writes one installation into one file, and brings it back.
//
//	Create:  Temporal's snapshot ──▶ blobs that records name ──▶ records at one revision
//	Verify:  the whole file, before anything is changed
//	Restore: Temporal's database, blobs, records; in the world only once all is there
//
// The file is a tar, compressed with zstd, that `tar --zstd -x` and `sha256sum -c` read:
//
//	burrow-backup.json      what it is: Header; always first
//	temporal/schema.json    which server version made the database (embedded mode only)
//	temporal/temporal.db    a snapshot of Temporal's SQLite database
//	blobs/<key>             bundles and logs
//	etcd/000001.jsonl       a line a key: Line, in the order of keys
//	SHA256SUMS              of all above
//	end.json                End: revision, counts, SHA-256 of SHA256SUMS; always last
//
// The order is that of safety: what Temporal's histories say was done is in the records,
// which are read later (docs/adr/0006-backup-order.md). A file without end.json was cut off.
package backup
