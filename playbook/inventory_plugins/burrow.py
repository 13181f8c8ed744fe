# The servers of burrow as an Ansible inventory: asks `burrow inventory --list`, once.
#
# Works with ansible-core 2.14 and later.

from __future__ import annotations

import json
import subprocess

from ansible.errors import AnsibleParserError
from ansible.plugins.inventory import BaseInventoryPlugin, Constructable
from ansible.utils.unsafe_proxy import wrap_var

DOCUMENTATION = """
    name: burrow
    short_description: servers that burrow built
    description:
      - Every server burrow knows, in the groups C(burrow), C(label_KEY_VALUE), C(network_NAME),
        C(image_NAME), C(host_NAME) and C(phase_NAME), with C(burrow_labels), C(burrow_addresses),
        C(burrow_host), C(burrow_networks), C(burrow_phase) and more as variables.
      - Servers are reached through burrow, so isolated networks work, and host keys are checked.
      - The inventory's file is named C(burrow.yml), C(burrow.yaml) or ends with C(.burrow.yml) or C(.burrow.yaml).
    options:
      plugin:
        description: Always C(burrow).
        required: true
        choices: [burrow]
      program:
        description: The burrow program.
        type: string
        default: burrow
        env: [{name: BURROW_PROGRAM}]
      config:
        description: The file that says where burrow is; default burrow's own.
        type: string
        env: [{name: BURROW_CONFIG}]
      selector:
        description: Only servers with these labels, as C(key=value,key).
        type: string
    extends_documentation_fragment:
      - constructed
"""

EXAMPLES = """
plugin: burrow
selector: app=shop
keyed_groups:
  - {key: burrow_labels.role, prefix: role}
compose:
  backup_name: burrow_host ~ '-' ~ burrow_server
"""

# Longer than burrow takes to say that nobody answers.
TIMEOUT = 60


def _unsafe(pairs):
    """burrow marks text that would be a template."""
    return wrap_var(pairs["__ansible_unsafe"]) if set(pairs) == {"__ansible_unsafe"} else pairs


class InventoryModule(BaseInventoryPlugin, Constructable):
    NAME = "burrow"

    def verify_file(self, path):
        names = ("burrow.yml", "burrow.yaml")
        return super().verify_file(path) and (
            path.rpartition("/")[2] in names or path.endswith(tuple("." + n for n in names)))

    def parse(self, inventory, loader, path, cache=True):
        super().parse(inventory, loader, path, cache)
        self._read_config_data(path)
        answer = self._ask()
        strict = self.get_option("strict")
        hostvars = answer.pop("_meta")["hostvars"]
        for host, variables in hostvars.items():
            inventory.add_host(host)
            for name, value in variables.items():
                inventory.set_variable(host, name, value)
        for name, group in answer.items():
            inventory.add_group(name)
            for host in group.get("hosts", ()):
                inventory.add_child(name, host)
        for host, variables in hostvars.items():
            self._set_composite_vars(self.get_option("compose"), variables, host, strict=strict)
            self._add_host_to_composed_groups(self.get_option("groups"), variables, host, strict=strict)
            self._add_host_to_keyed_groups(self.get_option("keyed_groups"), variables, host, strict=strict)

    def _ask(self):
        command = [self.get_option("program")]
        if self.get_option("config"):
            command += ["--config", self.get_option("config")]
        command += ["inventory", "--list"]
        if self.get_option("selector"):
            command.append("--selector=" + self.get_option("selector"))
        try:
            done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=TIMEOUT, check=False)
        except OSError as error:
            raise AnsibleParserError("%s cannot be started: %s" % (command[0], error)) from error
        except subprocess.TimeoutExpired as error:
            raise AnsibleParserError("burrow has not answered within %d s" % TIMEOUT) from error
        if done.returncode != 0:
            raise AnsibleParserError("burrow: " + done.stderr.decode(errors="replace").strip())
        return json.loads(done.stdout, object_hook=_unsafe)
