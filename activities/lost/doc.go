// Package lost is about hosts that were declared not to come back: it marks them, tells
// the operations that wait for them, and writes down what cannot be done there.
//
//	Declare ──▶ lost/<host> ──▶ Tell ──signal──▶ every operation on the host
//	                                              │ its undo cannot run there
//	                                              ▼
//	                            debts/<host>/… ◀── Owe      paid by the host's worker when it is back
package lost
