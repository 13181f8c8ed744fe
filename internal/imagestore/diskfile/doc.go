// Package diskfile is what image files need of a file system: a lock that dies with its
// holder, a digest that can be cancelled, free space, and a rename that survives a
// power cut.
//
//	Lock ──▶ write part ──▶ Digest ──▶ Publish (fsync file, rename, fsync folder)
package diskfile
