// Package scripts runs the command line as a user does: each testdata/*.txtar is a
// session at a shell, against a real gateway (its own socket, files as records).
//
//	testdata/get.txtar ──▶ burrow (this test binary, run again) ──gRPC──▶ gateway ──▶ $WORK/records/*.json
package scripts
