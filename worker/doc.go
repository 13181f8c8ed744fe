// Package worker is wiring only: configuration → drivers → activities → workers.
//
//	            ┌ control ─ state place ipam keys ansible.Check ─ workflows
//	worker.Run ─┤
//	            └ host ──── image volume network seed domain guest ansible
//	                        restore at start, libvirt events → records, lease
//	            gateway ─── records, bundles, streams (unix socket, mTLS)
package worker
