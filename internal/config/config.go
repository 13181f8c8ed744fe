// Package config is what a process must know before it can talk to the others:
// addresses, credentials and folders. `burrow up` writes both files into its data
// directory; a distributed installation writes them by hand (docs/distributed.md).
package config

import "path/filepath"

// Defaults of the embedded installation.
const (
	DefaultDataDir   = "/var/lib/burrow"
	DefaultNamespace = "burrow"
	DefaultPrefix    = "/burrow/v1"
	// ClientFile and WorkerFile are the names below the data directory.
	ClientFile = "client.json"
	WorkerFile = "worker.json"
	// Group may talk to the gateway and to Temporal: whoever is in it is root on the hosts.
	Group = "burrow"
	// AnsibleUser runs users' playbooks; it owns nothing and is in no group of ours.
	AnsibleUser = "burrow-ansible"
)

// TLS names PEM files. CA verifies the other side; Cert and Key are shown to it.
type TLS struct {
	CA         string `json:"ca"`
	Cert       string `json:"cert"`
	Key        string `json:"key"`
	ServerName string `json:"serverName,omitempty"`
}

// Temporal says how to reach the Temporal frontend. TLS nil means plain text.
type Temporal struct {
	Address   string `json:"address"`
	Namespace string `json:"namespace"`
	TLS       *TLS   `json:"tls,omitempty"`
}

// Etcd says how to reach etcd. Only workers have it.
type Etcd struct {
	Endpoints []string `json:"endpoints"`
	Prefix    string   `json:"prefix"`
	TLS       *TLS     `json:"tls,omitempty"`
}

// Gateway says where a gateway listens (worker) or is reached (client): a unix
// socket path, or host:port with TLS.
type Gateway struct {
	Socket  string `json:"socket,omitempty"`
	Address string `json:"address,omitempty"`
	TLS     *TLS   `json:"tls,omitempty"`
}

// Client is client.json: 0640, group burrow.
type Client struct {
	Temporal Temporal `json:"temporal"`
	Gateway  Gateway  `json:"gateway"`
	// WebUI is the address of Temporal's Web UI, for people: "http://127.0.0.1:8233".
	WebUI string `json:"webUI,omitempty"`
}

// Worker is worker.json: 0600, root.
type Worker struct {
	Temporal Temporal `json:"temporal"`
	Etcd     Etcd     `json:"etcd"`
	Gateway  Gateway  `json:"gateway"`
	// Blobs is a gocloud.dev/blob URL: "file:///var/lib/burrow/blobs".
	Blobs string `json:"blobs"`
	// MasterKeyFile holds 32 random bytes, 0600; it encrypts secrets in etcd. A rotation puts
	// the next key beside it, as <file>.<key id>.
	MasterKeyFile string `json:"masterKeyFile,omitempty"`
	// MasterKeyCommand prints the master keys instead, for a KMS: a program and its arguments,
	// no shell. 32 bytes, or a line of 64 hex digits for each key; it has 15 s. Excludes
	// MasterKeyFile.
	MasterKeyCommand []string `json:"masterKeyCommand,omitempty"`
	DataDir          string   `json:"dataDir"`
	Host             Host     `json:"host"`
	Keys             Keys     `json:"keys"`
}

// Keys says which servers login keys may come from.
type Keys struct {
	// CA is a PEM file of authorities trusted besides the system's: a site's own key server.
	CA string `json:"ca,omitempty"`
	// AllowPrivate accepts servers at private and loopback addresses.
	AllowPrivate bool `json:"allowPrivate,omitempty"`
	// AllowHTTP accepts plain http URLs.
	AllowHTTP bool `json:"allowHTTP,omitempty"`
}

// Host is the host role's part.
type Host struct {
	// Name of this hypervisor; default: os.Hostname up to the first dot.
	Name string `json:"name"`
	// Libvirt is the connection URI; default "qemu:///system".
	Libvirt string `json:"libvirt"`
	// Pool is the libvirt storage pool for volumes and images; default "burrow",
	// a dir pool at <dataDir>/pool that the host worker makes.
	Pool string `json:"pool"`
	// CacheDir holds downloads and built images; default "/var/cache/burrow".
	CacheDir string `json:"cacheDir"`
	// Accelerator: "" tests KVM by booting (pitfall 43); "kvm" or "tcg" forces one.
	Accelerator string `json:"accelerator,omitempty"`
}

// PoolDir is the target folder of the default pool.
func (w *Worker) PoolDir() string { return filepath.Join(w.DataDir, "pool") }

// AcceleratorFile keeps what the KVM test found in this boot.
func (w *Worker) AcceleratorFile() string { return filepath.Join(w.DataDir, "accelerator.json") }

// RunsDir holds one folder for each Ansible run.
func (w *Worker) RunsDir() string { return filepath.Join(w.DataDir, "runs") }

// GalaxyDir keeps roles and collections that playbooks require; deleting it costs a download.
func (w *Worker) GalaxyDir() string { return filepath.Join(w.DataDir, "galaxy") }
