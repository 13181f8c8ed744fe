// Package follow turns what Temporal knows of an operation into what a person watches:
//
//	history (long poll) ──▶ reducer ─┐
//	pending activities ─────────────┼─▶ render.Operation
//	pollers of a silent task queue ─┘
//
// It reads the history, not a query, so it works even while no worker is up, and says so.
package follow
