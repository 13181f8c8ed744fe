// Package etcdstate keeps what is true now: records, references, claims, hosts and
// their leases, reservations and secrets. It is the only importer of the etcd client
// (its subpackage addresses holds the address pools).
//
//	activities ──▶ Store ──Txn(compare what it was computed from)──▶ etcd
//	               │  records  servers/ networks/ volumes/ images/ hosts/ …
//	               │  refs/    which server needs a network on which host
//	               │  claims/  operations over several resources
//	               │  alive/   one lease a host      reservations/ placements/
//	               │  macs/    who owns a MAC        secrets/      AES-256-GCM; user/… are people's
//	               │  masterkey, keyholders/         which master key encrypts, who has which
//	               │  restoring  while a backup is brought back: no world to work on
//	               └─ locks/   order among processes; safety is always the Txn's
//
// Every write is a transaction that compares what it was computed from, by
// ModRevision or absence. A conflict is answered by reading again and applying the
// change again, never by writing an old object over a newer one.
//
// Errors wrap errs.ErrNotFound, ErrExists, ErrConflict, ErrUnavailable, ErrNoSpace,
// ErrBusy or ErrInvalid. What carries no class is transient: etcd is away for a while.
package etcdstate
