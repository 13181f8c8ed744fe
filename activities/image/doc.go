// Package image keeps the images that servers are built from in this host's pool.
//
//	Ensure ──▶ record ──▶ verified copy there? ──▶ done
//	              │ none          └─ no ──▶ bring it: download │ file │ local build
//	              └─▶ catalogue ──▶ download, new record
//
// An image is the volume img-<first 16 digits of its SHA-256>.qcow2: the same image under
// two names is one file. It is read-only and shared by the linked disks above it.
package image
