// Package faults breaks things under operations and looks at what is left. It proves one
// sentence: an operation ends Running, Held, or Failed with its reason and nothing left
// behind, whatever happens in between.
//
//	table (operation, step, activity, fault, expected end)
//	   │
//	   ▼                 orders (files)
//	 cells ──── run ───▶ burrow worker = this test binary, with an interceptor that obeys
//	   │                    │   orders: kill -9, error, hang, SIGSTOP, wait
//	   │                    ▼
//	   │        Temporal, etcd, libvirt, Open vSwitch, volumes: all real, in a lab host
//	   ▼
//	census ── compared with the expected world, by server, then with the world before
//
// Several cells run side by side on one installation, each on its own server and networks;
// a fault that hits the whole worker hits its neighbours too, which must not mind.
package faults
