package manifest

import (
	"fmt"
	"maps"
	"slices"
)

// connectionVariables are the names by which Ansible's ssh connection knows how a host is
// reached: the options of its ansible.builtin.ssh, with all aliases
// (ansible-doc -t connection ssh).
var connectionVariables = []string{
	"ansible_connection",
	"ansible_host", "ansible_ssh_host", "ansible_port", "ansible_ssh_port", "ansible_user", "ansible_ssh_user",
	"ansible_private_key_file", "ansible_ssh_private_key_file", "ansible_password", "ansible_ssh_pass", "ansible_ssh_password",
	"ansible_ssh_pkcs11_provider", "ansible_host_key_checking", "ansible_ssh_host_key_checking",
	"ansible_ssh_args", "ansible_ssh_common_args", "ansible_ssh_extra_args", "ansible_sftp_extra_args", "ansible_scp_extra_args",
	"ansible_ssh_executable", "ansible_sftp_executable", "ansible_scp_executable",
	"ansible_control_path", "ansible_control_path_dir", "ansible_timeout", "ansible_ssh_timeout",
}

// ConnectionVariable reports whether a variable of Ansible says how a host is reached, which
// burrow decides in its runs.
func ConnectionVariable(name string) bool { return slices.Contains(connectionVariables, name) }

// CheckConnection refuses variables that say how a host is reached: as extra variables they
// would beat burrow's. The error names the first by name.
func CheckConnection(vars map[string]any) error {
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		if ConnectionVariable(name) {
			return fmt.Errorf("%s says how a server is reached, which burrow decides", name)
		}
	}
	return nil
}

func (d *decoder) noConnection(path string, vars map[string]any) {
	if err := CheckConnection(vars); err != nil {
		d.complain(path, err.Error(), "remove it")
	}
}
