// Command burrow-devstack is what Burrow needs on one machine that has no cluster:
// a Temporal server, its Web UI and an etcd member in one process.
//
//	burrow-devstack serve --data-dir D --tls-dir T
//	┌───────────────────────────────────────────────┐
//	│ Temporal :7233 ── D/temporal/temporal.db       │   starts etcd, Temporal, Web UI;
//	│ Web UI   :8233    read-only                    │   stops in the reverse order on
//	│ etcd     :2379 ── D/etcd/member                │   SIGTERM; a kill -9 loses nothing
//	└───────────────────────────────────────────────┘   that was acknowledged
//
//	burrow-devstack etcd --data-dir D --name a --initial-cluster a=URL,b=URL,c=URL
//	                    one member of a cluster, and nothing else
//
// It is a module of its own because the server and the SDK that Burrow's workers
// use cannot share one.
package main
