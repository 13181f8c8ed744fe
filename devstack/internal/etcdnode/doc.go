// Package etcdnode runs one etcd member in this process, durable and alone.
//
//	clients ──gRPC, TCP (mTLS)──▶ member ──fsync──▶ <dir>/member
//	                               ├─ peer.sock   peers of a one-member cluster: nobody
//	                               └─ http.sock   etcd's HTTP side, off the network
//
// Peer and HTTP listeners are unix sockets in the data folder, which only the
// owner can enter: the only TCP port is the one that clients need.
package etcdnode
