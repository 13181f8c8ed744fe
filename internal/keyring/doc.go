// Package keyring is the master keys that a worker has: what encrypts secrets in etcd.
//
//	masterKeyFile     master.key            the first one
//	                  master.key.<key id>   made by a rotation, or copied from another machine
//	masterKeyCommand  its output            32 bytes, or a line of 64 hex digits for each key
//
// Which of them encrypts is decided in etcd, for all workers together (package etcdstate);
// here is only which ones can decrypt. Keys never appear in an error or a log.
package keyring
