package ansiblex

import "maps"

// ScriptGroup is a group in the answer of an inventory script.
type ScriptGroup struct {
	Hosts    []string `json:"hosts,omitempty"`
	Children []string `json:"children,omitempty"`
}

// ScriptMeta carries all hosts' variables, so that Ansible asks once.
type ScriptMeta struct {
	HostVars map[string]map[string]any `json:"hostvars"`
}

// Access is how a user's own Ansible reaches a server, from a shell on a machine with burrow.
type Access struct {
	// Proxy joins stdin and stdout with the server's port %p, KnownHosts prints its host keys
	// under its name: command lines for ssh_config.
	Proxy, KnownHosts string
	// Agent is the socket that Proxy serves a key on; empty: the user logs in with a key of hers.
	Agent string
}

// Script is what an inventory script answers to --list: groups by name, and "_meta".
// See https://docs.ansible.com/ansible/latest/dev_guide/developing_inventory.html.
func Script(hosts []Host, access func(Host) Access) map[string]any {
	meta := ScriptMeta{HostVars: make(map[string]map[string]any, len(hosts))}
	groups := map[string]*ScriptGroup{groupOfAll: {}}
	for _, h := range hosts {
		meta.HostVars[h.Name] = ScriptHost(h, access(h))
		for _, name := range append([]string{groupOfAll}, h.groups()...) {
			if groups[name] == nil {
				groups[name] = &ScriptGroup{}
			}
			groups[name].Hosts = append(groups[name].Hosts, h.Name)
		}
	}
	answer := map[string]any{"_meta": meta, "all": &ScriptGroup{Children: []string{"ungrouped", groupOfAll}}}
	for name, g := range groups {
		answer[name] = g
	}
	return answer
}

// ScriptHost is what an inventory script answers to --host.
func ScriptHost(h Host, access Access) map[string]any {
	vars := map[string]any{
		"ansible_connection": "ssh", "ansible_port": sshPort,
		"ansible_ssh_args": access.sshArgs(h),
		// By server, never by address: two isolated networks may have the same ones.
		"ansible_control_path":      "%(directory)s/burrow-" + short(h.UID),
		"ansible_host_key_checking": true, "ansible_ssh_host_key_checking": true,
		"ansible_timeout": connectTimeout, "ansible_python_interpreter": "auto_silent",
	}
	if h.Address != "" {
		vars["ansible_host"] = h.Address
	}
	if h.Login != "" {
		vars["ansible_user"] = h.Login
	}
	for name, value := range vars {
		if text, ok := value.(string); ok {
			vars[name] = AsData(text)
		}
	}
	maps.Copy(vars, h.facts())
	return vars
}

// sshArgs come first on Ansible's ssh command line, so that they win over ansible.cfg and
// ~/.ssh/config.
func (a Access) sshArgs(h Host) string {
	options := []string{
		"ControlMaster=auto", "ControlPersist=60s",
		"ProxyCommand=" + a.Proxy, "KnownHostsCommand=" + a.KnownHosts, "HostKeyAlias=" + h.Name,
		"UserKnownHostsFile=/dev/null", "GlobalKnownHostsFile=/dev/null", "StrictHostKeyChecking=yes",
		"CheckHostIP=no", "IdentitiesOnly=no", "UpdateHostKeys=no", "VerifyHostKeyDNS=no", "CanonicalizeHostname=no",
	}
	if a.Agent != "" {
		options = append(options, "IdentityAgent="+a.Agent)
	}
	args := ""
	for _, option := range options {
		args += " -o " + shlexWord(option)
	}
	return args[1:]
}
