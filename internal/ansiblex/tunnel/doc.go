// Package tunnel lets a run's ssh reach the run's servers, and nothing else.
//
//	ssh ─ProxyCommand─▶ burrow dial --socket S db ──"db\n"──▶ S ─▶ Server ─▶ Dial("db") ─▶ the guest's port 22
//	ssh ─IdentityAgent─▶ A ─▶ ServeAgent: lists and signs with the run's management keys
//
// The name must be one of the run's; what follows it are the connection's bytes, both ways.
package tunnel
