// Package cli is the burrow command: nouns and verbs, one file a verb.
//
//	arguments ─arrange─▶ urfave/cli ─▶ command ─┬─ gateway   records, bundles, streams
//	(flags anywhere)                            └─ Temporal  operations (apply, delete, …)
//	                                              │
//	              exit code ◀─ report ◀─ error ───┘   one place prints and decides
//
// The command line needs Temporal and a gateway, never etcd or libvirt.
package cli
