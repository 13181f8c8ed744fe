// Package addresses hands out the addresses of networks, each to one owner, under
// concurrent workers that may die at any point.
//
//	Allocate ─▶ o/<owner> there? ─▶ the same answer
//	     │ no
//	     ▼
//	queue of the network (one process's requests are served together)
//	     ▼
//	lock ─▶ read pool, cursor, block counts ─▶ read one block ─▶ Txn ─▶ unlock
//	                                                              │
//	        if: lock still ours, a/ o/ q/ absent, count and pool unchanged
//
// The lock gives order, the transaction gives safety, the reverse index gives
// idempotence. Round trips do not depend on how full a pool is.
//
// Keys, below ipam/<network uid>/: a/<address> (owner, since), o/<owner> (address),
// q/<address> (leased: not handed out again until it expires), b/<block> (addresses in
// use among 256, or in a smaller subnet), cursor/<subnet> (next address to try).
//
// pools/<network uid> is the network as settled, with what users have reserved in it. What is
// reserved, by the manifest or by a user, is one thing from there on: it is taken out of the
// subnet's addrspace.Space, so it is neither handed out nor counted in a block. The
// entry's revision is compared by every transaction: nothing is handed out on a network that
// was deleted or changed meanwhile.
package addresses
