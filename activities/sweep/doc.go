// Package sweep finds what differs between the records and the world, and mends what is
// safe to mend.
//
//	Unfinished  records whose operation is gone            ──▶ a workflow of that name settles them
//	LookHost    domains, disks, seeds, ports, networks     ─┐
//	LookState   addresses, MACs, reservations, keys, claims ─┴▶ Judge ──▶ note | wait | ClearHost, ClearState
//
// Everything that burrow makes for a server carries the server's uid. A uid is made with
// its record, before anything else of it, and is never used again; its record goes last.
// So whoever lists leftovers first and reads the records after knows: a uid that has no
// record then will not have one again, and no operation works for it.
//
// A uid without a record was deleted, which the store remembers, or its record was lost
// (etcd was restored from an older copy). Of the first, what is left is removed, at the
// second sighting. Of the second, nothing is removed while a guest or a disk of it exists,
// unless a person says so.
package sweep
