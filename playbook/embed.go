// Package playbook is the folder of playbooks and roles that ship with burrow. What a
// worker needs of it is inside its binary.
//
//	callback_plugins/burrow.py   Ansible's events as JSON lines
//	mysql-setup.yaml hosts.yaml  a database server on its data volume
//	roles/mysql/                 what mysql-setup.yaml does
package playbook

import _ "embed"

//go:embed callback_plugins/burrow.py
var callbackPlugin []byte

// CallbackPlugin is the Ansible callback plugin that writes one JSON line an event to the
// file descriptor named by BURROW_EVENTS_FD. Works with ansible-core 2.14 and later.
func CallbackPlugin() []byte { return callbackPlugin }
