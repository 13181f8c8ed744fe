// Package volume makes and deletes the disks of servers, and Volume resources.
//
//	image (qcow2, read-only) ◀── backing ── <server>-<uid8>-boot.qcow2          vda
//	                                        <server>-<uid8>-boot2.qcow2         vda after a rebuild
//	                                        <server>-<uid8>-data-<name>.qcow2   vdb …
//	Volume resource                         vol-<name>-<uid8>.qcow2
//
// The owner's uid is in the name, so that an interrupted create meets its own volume
// again, a delete needs no list, and no name of ours can be somebody else's. Nothing is
// deleted by path, and nothing is looked for by listing.
//
// A volume that is there is adopted when it is whole, grown when it is smaller than
// asked, and made again only when it is the torso of an interrupted copy.
package volume
