// Package etcdnode runs one etcd member in this process, durable: alone, or one of several.
//
//	clients ──gRPC, TCP (mTLS)──▶ member ──fsync──▶ <dir>/member
//	                               ├─ peer.sock   peers of a one-member cluster: nobody
//	                               ├─ or TCP (mTLS), with the other members of a Cluster
//	                               └─ http.sock   etcd's HTTP side, off the network
//
// A member alone has its peer and HTTP listeners on unix sockets in the data folder,
// which only the owner can enter: the only TCP port is the one that clients need.
package etcdnode
