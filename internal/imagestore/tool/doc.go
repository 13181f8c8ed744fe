// Package tool runs a program of the host to its end: no environment but what is given,
// dead with its context and with this process, and an error that shows its last lines.
//
//	Run(ctx, Command) ──▶ own process group ──▶ exit status + tail of what it said ──▶ Error
package tool
