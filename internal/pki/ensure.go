package pki

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"burrow.dev/burrow/internal/config"
)

const (
	// WorkerCommonName is the only certificate name that the embedded etcd admits.
	WorkerCommonName = "burrow-worker"
	// ServerName is in every server certificate, whatever the host's name is.
	ServerName = "localhost"
	// dirMode lets members of the group open files by name without listing them.
	dirMode fs.FileMode = 0o711
)

// Options says who may read what.
type Options struct {
	// GroupID owns the client key (0640); negative leaves the process's group.
	GroupID int
	// Hosts are more names and addresses for the server certificate.
	Hosts []string
	// Now is the time that validity is judged by; zero means time.Now.
	Now time.Time
}

// Ensure makes or renews the authority and the certificates of an installation in
// dir, and sets their modes. Renewed tells which certificates were written.
// Running it again changes nothing. It is not safe beside itself: hold the
// installation's lock.
func Ensure(dir string, o Options) (renewed []string, err error) {
	now := o.Now
	if now.IsZero() {
		now = time.Now()
	}
	if err := os.MkdirAll(dir, dirMode); err != nil {
		return nil, fmt.Errorf("certificates: make folder: %w", err)
	}
	if err := os.Chmod(dir, dirMode); err != nil {
		return nil, fmt.Errorf("certificates: set folder mode: %w", err)
	}
	authority, err := ensureAuthority(dir, now)
	if err != nil {
		return nil, err
	}
	for _, role := range roles(o.Hosts) {
		written, err := authority.ensureLeaf(dir, role, now)
		if err != nil {
			return renewed, err
		}
		if written {
			renewed = append(renewed, role.Name)
		}
		if err := restrict(dir, role, o.GroupID); err != nil {
			return renewed, err
		}
	}
	return renewed, nil
}

// roles of an embedded installation.
func roles(hosts []string) []Role {
	names := append([]string{ServerName, "127.0.0.1", "::1"}, hosts...)
	slices.Sort(names)
	return []Role{
		{Name: "server", CommonName: "burrow-server", Hosts: slices.Compact(names), KeyMode: 0o600},
		{Name: "worker", CommonName: WorkerCommonName, KeyMode: 0o600},
		{Name: "client", CommonName: "burrow-client", KeyMode: 0o640},
	}
}

// restrict gives the key file its mode and, when others than the owner may read it, its group.
func restrict(dir string, role Role, group int) error {
	file := filepath.Join(dir, role.Name+"-key.pem")
	if role.KeyMode&0o070 != 0 && group >= 0 {
		if err := os.Chown(file, -1, group); err != nil {
			return fmt.Errorf("key %s: set group: %w", file, err)
		}
	}
	if err := os.Chmod(file, role.KeyMode); err != nil {
		return fmt.Errorf("key %s: set mode: %w", file, err)
	}
	return nil
}

// Files names the PEM files that a process of a role ("server", "worker", "client") uses.
func Files(dir, role string) *config.TLS {
	return &config.TLS{
		CA:         filepath.Join(dir, "ca.pem"),
		Cert:       filepath.Join(dir, role+".pem"),
		Key:        filepath.Join(dir, role+"-key.pem"),
		ServerName: ServerName,
	}
}
