package ansiblex

import (
	"bytes"
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	"golang.org/x/crypto/ssh"
)

// Host is a server as Ansible reaches it.
type Host struct {
	Name     string // in the inventory; the server's
	UID      string
	Address  string
	Login    string
	HostKeys []string      // authorized_keys form
	Key      ssh.PublicKey // of the management key; the private one is behind agent.sock
	Labels   map[string]string
	Networks []string
	Image    string
	// Addresses, Hypervisor and Phase are for who asks from outside: a run has one address,
	// and its servers' phase is that they are configured.
	Addresses  []string
	Hypervisor string
	Phase      string
}

// sshPort is where servers listen, seen from their network.
const sshPort = 22

// connection gives all variables that decide how Ansible reaches h, under all the names
// that Ansible knows them by: of two aliases in different files it may take the user's.
func (f *Folder) connection(h Host, burrow string) map[string]any {
	key := f.Path("etc", "keys", h.Name+".pub")
	return map[string]any{
		"ansible_connection": "ssh",
		"ansible_host":       h.Address, "ansible_ssh_host": h.Address,
		"ansible_port": sshPort, "ansible_ssh_port": sshPort,
		"ansible_user": h.Login, "ansible_ssh_user": h.Login,
		"ansible_private_key_file": key, "ansible_ssh_private_key_file": key,
		"ansible_password": "", "ansible_ssh_pass": "", "ansible_ssh_password": "", "ansible_ssh_pkcs11_provider": "",
		"ansible_host_key_checking": true, "ansible_ssh_host_key_checking": true,
		"ansible_ssh_args":        f.sshArgs(h, burrow),
		"ansible_ssh_common_args": "", "ansible_ssh_extra_args": "", "ansible_sftp_extra_args": "", "ansible_scp_extra_args": "",
		"ansible_ssh_executable": "ssh", "ansible_sftp_executable": "sftp", "ansible_scp_executable": "scp",
		"ansible_control_path": f.controlPath(h), "ansible_control_path_dir": f.Path("work", "cp"),
		"ansible_timeout": connectTimeout, "ansible_ssh_timeout": connectTimeout,
		"ansible_python_interpreter": "auto_silent",
	}
}

// connectTimeout, in seconds: a guest that is emulated answers slowly.
const connectTimeout = 60

// controlPath is by server uid and run, never by address: two isolated networks may have
// the same addresses (pitfall 68).
func (f *Folder) controlPath(h Host) string {
	return f.Path("work", "cp", short(h.UID))
}

// short gives a name for a uid that fits into a socket's path: 50 bits of its hash.
func short(uid string) string {
	sum := sha256.Sum256([]byte(uid))
	return strings.ToLower(base32.StdEncoding.EncodeToString(sum[:]))[:10]
}

// sshArgs come first on Ansible's ssh command line, and ssh takes the first value of an option.
func (f *Folder) sshArgs(h Host, burrow string) string {
	options := []string{
		"ControlMaster=auto", "ControlPersist=60s", "ControlPath=" + f.controlPath(h),
		"ProxyCommand='" + fmt.Sprintf("%s dial --socket %s %s", burrow, f.DialSocket(), h.Name) + "'",
		"HostKeyAlias=" + h.UID, "StrictHostKeyChecking=yes", "UpdateHostKeys=no", "CheckHostIP=no",
		"UserKnownHostsFile=" + f.Path("etc", "known_hosts"), "GlobalKnownHostsFile=/dev/null",
		"IdentityAgent=" + f.AgentSocket(), "IdentitiesOnly=yes", "IdentityFile=" + f.Path("etc", "keys", h.Name+".pub"),
		"BatchMode=yes", "ForwardAgent=no", "ForwardX11=no", "PermitLocalCommand=no",
		// A guest that vanished is noticed within two minutes, also by a task that says nothing.
		"ServerAliveInterval=30", "ServerAliveCountMax=4",
	}
	return "-F none -o " + strings.Join(options, " -o ")
}

// knownHosts pins the host keys under the servers' uids.
func knownHosts(hosts []Host) ([]byte, error) {
	var b bytes.Buffer
	for _, h := range hosts {
		for _, line := range h.HostKeys {
			key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(line))
			if err != nil {
				return nil, fmt.Errorf("host key of server %s: %w", h.Name, err)
			}
			fmt.Fprintf(&b, "%s %s", h.UID, ssh.MarshalAuthorizedKey(key))
		}
	}
	return b.Bytes(), nil
}

// inventory is ours: every server with its variables, and groups by label, network and
// image. JSON, which is YAML, so nothing in a label can be taken for syntax.
func (f *Folder) inventory(hosts []Host, burrow string) ([]byte, error) {
	type group struct {
		Hosts map[string]map[string]any `json:"hosts,omitempty"`
	}
	groups := map[string]group{groupOfAll: {Hosts: map[string]map[string]any{}}}
	join := func(name, host string) {
		if _, ok := groups[name]; !ok {
			groups[name] = group{Hosts: map[string]map[string]any{}}
		}
		groups[name].Hosts[host] = map[string]any{}
	}
	for _, h := range hosts {
		vars := map[string]any{}
		if h.Address != "" {
			vars = f.connection(h, burrow)
		}
		maps.Copy(vars, h.facts())
		groups[groupOfAll].Hosts[h.Name] = vars
		for _, name := range h.groups() {
			join(name, h.Name)
		}
	}
	all := map[string]any{"all": map[string]any{"children": groups}}
	return json.MarshalIndent(all, "", "  ")
}
