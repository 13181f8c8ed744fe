package gateway

import "time"

const (
	// MaxBundle is the largest bundle that is taken, in bytes: playbooks are text, and
	// what is larger belongs on a server that the playbook downloads from.
	MaxBundle = 256 << 20

	// chunkSize is how much of a stream goes in one message: large enough to fill a
	// pipe, small enough that many streams need little memory.
	chunkSize = 64 << 10
	// maxMessage bounds one message: a record is less than 64 KiB, a chunk 64 KiB.
	maxMessage = 1 << 20
	// maxConnections and maxStreams bound what one worker holds open; one `ansible -f 50`
	// needs 50 of each.
	maxConnections          = 512
	maxStreams              = 1024
	maxStreamsPerConnection = 256
	// maxListings bounds how many listings of whole records are read at once, each of which
	// holds up to 4 MiB; others wait for their turn.
	maxListings = 32

	// connectTimeout bounds the handshake and the client's first question: the other
	// side is on this machine or in this site.
	connectTimeout = 5 * time.Second
	// callTimeout bounds calls that only read a record.
	callTimeout = 15 * time.Second
	// dialTimeout bounds a connection into a network; a guest that is up answers at once.
	dialTimeout = 10 * time.Second
	// dialStagger is how long one address of a server has before the next is tried
	// beside it (RFC 8305 recommends 250 ms).
	dialStagger = 250 * time.Millisecond
	// stopTimeout is what open streams have when the worker ends; consoles never end by themselves.
	stopTimeout = 2 * time.Second

	// A dead peer is noticed within keepaliveEvery + keepaliveTimeout. gRPC allows
	// clients no interval below 10 s.
	keepaliveEvery   = 10 * time.Second
	keepaliveTimeout = 5 * time.Second
	// keepaliveMinimum is the fastest ping that the server takes from a client.
	keepaliveMinimum = 5 * time.Second
)
