// Package imagestore brings images to a host and proves what they are, before a pool
// has them: download, decompression, inspection, conversion, digest.
//
//	URL ──Fetch──▶ part file (resumed by Range) ──checksum──┐
//	file on the host ───────────────────────────────────────┼─▶ Install ──▶ <pool>/img-<sha256[:16]>.qcow2
//	recipe ──Build──▶ cached qcow2 ─────────────────────────┘     decompress, inspect, convert, digest, fsync, rename
//
// A file has its final name only when it is complete and verified. A verified file has
// a mark in the cache folder; without the mark it is digested again before it is used.
// What is half done is found again (downloads) or removed (everything else).
package imagestore
