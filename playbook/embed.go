// Package playbook is the folder of playbooks and roles that ship with burrow. What a
// worker needs of it is inside its binary.
//
//	callback_plugins/burrow.py   Ansible's events as JSON lines
//	inventory_plugins/burrow.py  burrow's servers as an inventory of the user's own Ansible
//	mysql-setup.yaml hosts.yaml  a database server on its data volume
//	base.yaml, nginx.yaml, …     what else ships; README.md has the list
//	roles/                       what they do
package playbook

import _ "embed"

//go:embed callback_plugins/burrow.py
var callbackPlugin []byte

// CallbackPlugin is the Ansible callback plugin that writes one JSON line an event to the
// file descriptor named by BURROW_EVENTS_FD. Works with ansible-core 2.14 and later.
func CallbackPlugin() []byte { return callbackPlugin }

//go:embed inventory_plugins/burrow.py
var inventoryPlugin []byte

// InventoryPlugin is the Ansible inventory plugin "burrow", which asks `burrow inventory
// --list`. Works with ansible-core 2.14 and later.
func InventoryPlugin() []byte { return inventoryPlugin }
