// Package addrspace is what there is to know of a network's addresses without asking
// anybody: which ones a subnet can hand out, in which blocks, and why it refuses others;
// and the words in which address pools are asked and answer. It does no I/O.
//
//	manifest.Subnet ──Parse──▶ Space   automatic ranges ▓, refused ░ (network, gateway, reserved, broadcast)
//
//	10.0.0.0/24   ░░▓▓▓▓▓▓▓▓▓▓▓▓░░░▓▓▓▓▓▓▓▓▓▓▓▓░
package addrspace
