// Package capacity is what hosts have and what servers take of it. It does no I/O.
//
//	Spec × overcommit − Σ Reservation = room      (CPU 4:1, memory 1:1, disk by pool 1:1)
package capacity
