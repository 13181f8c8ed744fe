// Package pki is the small certificate authority of an embedded installation:
// loopback is not trusted, so Temporal and etcd ask whoever connects for a
// certificate that `burrow up` made.
//
//	<dataDir>/tls/  (0711: names can be opened, not listed)
//	  ca.pem      0644   ca-key.pem      0600   signs the three below
//	  server.pem  0644   server-key.pem  0600   Temporal, etcd, gateway: localhost, 127.0.0.1, ::1, the host's name
//	  worker.pem  0644   worker-key.pem  0600   CN burrow-worker: the only name that etcd admits
//	  client.pem  0644   client-key.pem  0640   CN burrow-client: the CLI, group burrow
//
// Renewal keeps keys: a renewed certificate replaces one file, by rename, so a reader
// never sees a pair that does not match, and what the old authority certificate
// signed still verifies under the new one.
package pki
