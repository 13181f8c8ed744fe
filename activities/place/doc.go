// Package place chooses the host of a server and reserves its room there, in one
// transaction, so that two servers never get the same room.
//
//	hosts alive, schedulable, matching ──Lacks──▶ those with room ──most free memory──▶ reserve
package place
