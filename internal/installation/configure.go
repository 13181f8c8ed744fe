package installation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"burrow.dev/burrow/internal/config"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/internal/pki"
)

// Default ports, all on loopback.
const (
	DefaultTemporalPort = 7233
	DefaultWebUIPort    = 8233
	DefaultEtcdPort     = 2379
)

const (
	loopback        = "127.0.0.1"
	defaultLibvirt  = "qemu:///system"
	defaultPool     = "burrow"
	defaultCacheDir = "/var/cache/burrow"
)

// Ports of the embedded stack; 0 means the one of last time, else the default.
type Ports struct {
	Temporal, WebUI, Etcd int
}

// Settings are what somebody asked for; zero fields leave what worker.json says.
type Settings struct {
	Ports
	// HostName of this hypervisor. It cannot be changed later: servers are placed by it.
	HostName string
	// Accelerator is "kvm", "tcg", or "auto", which tests KVM by booting.
	Accelerator string
	// KeysCA is an absolute path; see config.Keys.
	KeysCA string
	// KeysAllowPrivate, see config.Keys; nil leaves it.
	KeysAllowPrivate *bool
}

// Configuration is what was written.
type Configuration struct {
	Folder Folder
	Ports  Ports
	Client config.Client
	Worker config.Worker
	// Said is what the user should know was made, a sentence each.
	Said []string
}

// Configure makes accounts, certificates and the master key where they are missing,
// and writes client.json and worker.json. What an administrator may have edited stays:
// the host and keys parts of worker.json, its blobs, its etcd prefix. Hold the folder's lock.
func Configure(ctx context.Context, folder Folder, settings Settings, accounts Accounts) (*Configuration, error) {
	gid, said, err := ensureAccounts(ctx, accounts)
	if err != nil {
		return nil, err
	}
	var client config.Client
	var worker config.Worker
	if err := errors.Join(readJSON(folder.ClientFile(), &client), readJSON(folder.WorkerFile(), &worker)); err != nil {
		return nil, err
	}
	c := &Configuration{Folder: folder, Ports: settings.orThose(client, worker), Said: said}
	if err := settings.apply(&worker); err != nil {
		return nil, err
	}
	if err := c.fill(client, worker); err != nil {
		return nil, err
	}
	renewed, err := c.RenewCertificates(gid)
	if err != nil {
		return nil, err
	}
	if len(renewed) > 0 {
		c.Said = append(c.Said, "made certificates: "+strings.Join(renewed, ", "))
	}
	if file := c.Worker.MasterKeyFile; file != "" {
		if err := folder.ensureMasterKey(file); err != nil {
			return nil, err
		}
	}
	if err := writeJSON(folder.WorkerFile(), c.Worker, 0o600, -1); err != nil {
		return nil, err
	}
	return c, writeJSON(folder.ClientFile(), c.Client, 0o640, gid)
}

// ensureMasterKey makes the first master key. Where there are records already it refuses
// to: a new one reads none of the secrets in etcd.
func (f Folder) ensureMasterKey(file string) error {
	_, err := os.Lstat(f.path("etcd", "member"))
	world := err == nil
	_, err = os.Lstat(file)
	if !world || !errors.Is(err, fs.ErrNotExist) {
		return pki.EnsureMasterKey(file)
	}
	next := "put your copy of it back, mode 0600"
	if beside, _ := filepath.Glob(file + ".*"); len(beside) > 0 {
		next = "put your copy of it, or the newest of " + strings.Join(beside, ", ") + ", there"
	}
	return errs.NewOperator("master key "+file, "check", errs.Reason("%w: secrets in etcd are encrypted under it", errs.ErrNotFound), next)
}

// RenewCertificates makes missing certificates and renews those near their end; gid
// may read the client's key. Running processes read them at their next connection.
func (c *Configuration) RenewCertificates(gid int) (renewed []string, err error) {
	var hosts []string
	if name, err := os.Hostname(); err == nil {
		hosts = append(hosts, name)
	}
	return pki.Ensure(c.Folder.TLS(), pki.Options{GroupID: gid, Hosts: hosts})
}

// fill computes both files from what was in them before.
func (c *Configuration) fill(client config.Client, worker config.Worker) error {
	temporal := config.Temporal{Address: address(c.Ports.Temporal), Namespace: config.DefaultNamespace}
	client.Temporal, worker.Temporal = temporal, temporal
	client.Temporal.TLS = pki.Files(c.Folder.TLS(), "client")
	worker.Temporal.TLS = pki.Files(c.Folder.TLS(), "worker")
	client.Gateway = config.Gateway{Socket: c.Folder.Socket()}
	worker.Gateway.Socket = c.Folder.Socket()
	client.WebUI = "http://" + address(c.Ports.WebUI)

	worker.Etcd.Endpoints = []string{"https://" + address(c.Ports.Etcd)}
	worker.Etcd.TLS = pki.Files(c.Folder.TLS(), "worker")
	fallback(&worker.Etcd.Prefix, config.DefaultPrefix)
	fallback(&worker.Blobs, (&url.URL{Scheme: "file", Path: c.Folder.path("blobs")}).String())
	worker.DataDir = string(c.Folder)
	if len(worker.MasterKeyCommand) == 0 {
		worker.MasterKeyFile = c.Folder.MasterKey()
	}
	if worker.Host.Name == "" {
		name, err := os.Hostname()
		if err != nil {
			return errs.NewOperator(c.Folder.WorkerFile(), "name this host", err, "write host.name into it")
		}
		worker.Host.Name, _, _ = strings.Cut(name, ".")
	}
	fallback(&worker.Host.Libvirt, defaultLibvirt)
	fallback(&worker.Host.Pool, defaultPool)
	fallback(&worker.Host.CacheDir, defaultCacheDir)
	c.Client, c.Worker = client, worker
	return nil
}

// apply writes what was asked for into what was there.
func (s Settings) apply(worker *config.Worker) error {
	object := "host " + worker.Host.Name
	if s.HostName != "" && worker.Host.Name != "" && s.HostName != worker.Host.Name {
		return errs.NewPermanent(object, "rename to "+s.HostName, errs.Reason("%w: servers are placed by this name", errs.ErrInvalid),
			"leave out --host-name, or begin with another --data-dir")
	}
	if s.HostName != "" {
		worker.Host.Name = s.HostName
	}
	switch s.Accelerator {
	case "":
	case "auto":
		worker.Host.Accelerator = ""
	case "kvm", "tcg":
		worker.Host.Accelerator = s.Accelerator
	default:
		return errs.NewPermanent("accelerator "+s.Accelerator, "configure", errs.Reason("%w: there is none of this name", errs.ErrInvalid), "--accelerator auto, kvm or tcg")
	}
	if s.KeysCA != "" {
		if _, err := os.Stat(s.KeysCA); err != nil {
			return errs.NewOperator("certificate authorities "+s.KeysCA, "read", err, "correct --keys-ca")
		}
		worker.Keys.CA = s.KeysCA
	}
	if s.KeysAllowPrivate != nil {
		worker.Keys.AllowPrivate = *s.KeysAllowPrivate
	}
	return nil
}

func fallback(field *string, value string) {
	if *field == "" {
		*field = value
	}
}

func address(port int) string { return net.JoinHostPort(loopback, strconv.Itoa(port)) }

// orThose fills in the ports of the files of last time, then the defaults.
func (p Ports) orThose(client config.Client, worker config.Worker) Ports {
	etcd := ""
	if len(worker.Etcd.Endpoints) > 0 {
		etcd = worker.Etcd.Endpoints[0]
	}
	return Ports{
		Temporal: choose(p.Temporal, client.Temporal.Address, DefaultTemporalPort),
		WebUI:    choose(p.WebUI, client.WebUI, DefaultWebUIPort),
		Etcd:     choose(p.Etcd, etcd, DefaultEtcdPort),
	}
}

// LastPorts are those that were configured last.
func (f Folder) LastPorts() (Ports, error) {
	var client config.Client
	var worker config.Worker
	err := errors.Join(readJSON(f.ClientFile(), &client), readJSON(f.WorkerFile(), &worker))
	return Ports{}.orThose(client, worker), err
}

// choose gives the asked port, else that of an earlier loopback address or URL, else the default.
func choose(asked int, earlier string, standard int) int {
	if asked != 0 {
		return asked
	}
	if _, rest, ok := strings.Cut(earlier, "://"); ok {
		earlier = rest
	}
	if at, err := netip.ParseAddrPort(earlier); err == nil && at.Addr().IsLoopback() && at.Port() != 0 {
		return int(at.Port())
	}
	return standard
}

// readJSON reads a file of ours; a missing one leaves the value as it is.
func readJSON(path string, value any) error {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return errs.NewOperator(path, "read", err, "run as root")
	}
	if err := json.Unmarshal(text, value); err != nil {
		return errs.NewOperator(path, "read", err, "correct it, or remove it to have it written anew")
	}
	return nil
}

// writeJSON puts a file in place at once; gid -1 leaves the group.
func writeJSON(path string, value any, mode fs.FileMode, gid int) error {
	text, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return fmt.Errorf("%s: encode: %w", path, err)
	}
	aside := path + ".new"
	if err := os.Remove(aside); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return errs.NewOperator(path, "write", err, "run as root")
	}
	err = os.WriteFile(aside, append(text, '\n'), 0o600)
	if err == nil {
		err = os.Chown(aside, -1, gid)
	}
	if err == nil {
		err = os.Chmod(aside, mode)
	}
	if err == nil {
		err = os.Rename(aside, path)
	}
	if err != nil {
		return errs.NewOperator(path, "write", err, "is the disk full? run as root")
	}
	return nil
}

// ReadClient reads client.json of a data directory. A file that is not there leaves
// client as it is.
func ReadClient(folder Folder, client *config.Client) error {
	return readJSON(folder.ClientFile(), client)
}
