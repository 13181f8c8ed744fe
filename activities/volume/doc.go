// Package volume makes and deletes the disks of servers, and Volume resources.
//
//	image (qcow2, read-only) ◀── backing ── <server>-<uid8>-boot.qcow2          vda
//	                                        <server>-<uid8>-boot2.qcow2         vda after a rebuild
//	                                        <server>-<uid8>-data-<name>.qcow2   vdb …
//	Volume resource                         vol-<name>-<uid8>.qcow2
//
// The owner's uid is in the name, so that an interrupted create meets its own volume
// again, and a delete needs no list. What makes a volume ours is its mark, a file of the
// same name in a folder beside the pool, written after it was seen that nothing of that
// name is there, and before anything is made. What has no mark is refused, and never
// deleted. Nothing is deleted by path, and nothing is looked for by listing.
//
// A volume that is there is adopted when it is whole, grown when it is smaller than
// asked, and made again only when it is the torso of an interrupted copy.
package volume
