// Package blob keeps what is too big for etcd and Temporal: playbook bundles and run
// logs. It is the only importer of gocloud.dev/blob.
//
//	bundles/<sha256 hex>.tar.zst          content-addressed: the digest is checked on every Put and Get
//	logs/<server uid>/<run id>.log
//
// A file:// store is a directory: a blob appears whole, after it has reached the disk,
// or not at all.
package blob
