// Package installation lays out the data directory of one machine and says which
// processes it needs: what `burrow up` prepares before it supervises.
//
//	/var/lib/burrow            0711 root: names can be opened, not listed
//	  client.json              0640 group burrow   where the CLI finds Temporal and the gateway
//	  worker.json              0600                where the worker finds everything
//	  master.key               0600                encrypts secrets in etcd
//	  tls/                     certificates (internal/pki)
//	  temporal/ etcd/          the embedded stores, 0700
//	  gateway.sock             0660 group burrow
//	  run/ log/ up.lock        the supervisor's (internal/supervise)
//
//	OpenFolder ──▶ supervise.Acquire ──▶ Configure ──▶ Parts: devstack, worker       (up)
//	                                             └──▶ StartEtcd, StageHistory, …      (restore)
package installation
