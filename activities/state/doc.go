// Package state writes the records of resources for operations: what is asked for, which
// operation works on it, and how it ended.
//
//	absent ──Begin──▶ Provisioning ──Finish──▶ Running / Ready
//	                   │  Note, Hold ▲           │ Begin(Updating), Finish
//	                   └──Fail──▶ Failed         ▼
//	                                Begin(Deleting) ──Remove──▶ absent
//
// Every write happens only while the record carries the uid, and where it ends an
// operation, that operation's run: a late retry of an old run changes nothing.
package state
