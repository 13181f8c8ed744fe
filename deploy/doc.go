// Package deploy holds what installs Burrow, and tests that check it as far as they
// can without the machines it is for.
//
//	burrow.service          burrow up at boot, on one machine
//	burrow-worker.service   one worker of a distributed installation
//	compose/                what docker-compose.yml mounts; tls.yml adds certificates,
//	                        etcd-member.yml is one etcd member on a machine of its own
//	make-certificates.sh    authority and certificates of a distributed installation
package deploy
