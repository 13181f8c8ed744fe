package seed

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/uuid"

	"burrow.dev/burrow/activities"
	"burrow.dev/burrow/internal/ansiblex/inguest"
	"burrow.dev/burrow/internal/cloudinit"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/internal/sshkeys"
)

const (
	// dirMode lets QEMU's user reach a seed whose name it was told, and list nothing.
	dirMode = 0o711
	// fileMode: the seed holds a private key. libvirt changes the owner, not the mode.
	fileMode = 0o600
	// hashLength is how much of the content's hash stands in the name.
	hashLength = 12
)

// Config is what the activities need.
type Config struct {
	// Dir holds the seeds; made when it is not there.
	Dir string
	// Secrets keeps the servers' keys.
	Secrets sshkeys.Store
	// Passwords gives what manifests name as secret:NAME.
	Passwords Passwords
	// Bundles has the folders of playbooks that run in the guest.
	Bundles inguest.Bundles
	Log     *slog.Logger
}

// Passwords is the secrets that people set.
type Passwords interface {
	// Get gives a secret in clear; errs.ErrNotFound when there is none.
	Get(ctx context.Context, name string) ([]byte, error)
}

// Activities writes and removes seeds on this host.
type Activities struct{ cfg Config }

// New makes the activities.
func New(cfg Config) *Activities {
	if cfg.Log == nil {
		cfg.Log = slog.Default()
	}
	return &Activities{cfg: cfg}
}

// Write makes the server's keys if there are none yet, and its seed. The same input
// gives the same file.
func (a *Activities) Write(ctx context.Context, in WriteIn) (WriteOut, error) {
	if err := checkUID(in.Server); err != nil {
		return WriteOut{}, err
	}
	keys, err := sshkeys.Ensure(ctx, a.cfg.Secrets, in.Server.UID)
	if err != nil {
		return WriteOut{}, about(in.Server, "make ssh keys", err)
	}
	root, err := a.rootPassword(ctx, in)
	if err != nil {
		return WriteOut{}, err
	}
	cfg := configOf(in, keys)
	cfg.RootPassword = root
	if in.Play != nil {
		if cfg.Files, cfg.Commands, err = a.play(ctx, in); err != nil {
			return WriteOut{}, about(in.Server, "write seed", err)
		}
	}
	seed, err := cloudinit.Render(cfg)
	if err != nil {
		return WriteOut{}, about(in.Server, "write seed", err)
	}
	path := a.path(in.Server, seed)
	if err := writeOnce(path, seed); err != nil {
		return WriteOut{}, fileError(in.Server, "write seed", err)
	}
	return WriteOut{Path: path, HostKeys: []string{keys.HostKeyLine()}, Login: cfg.Users[0].Name}, nil
}

// path is where a seed is: its name says whose it is, and what is in it.
func (a *Activities) path(server activities.Server, seed cloudinit.Seed) string {
	return filepath.Join(a.cfg.Dir, server.UID+"-"+seed.Digest()[:hashLength]+".iso")
}

// Remove deletes every seed of a server, and its keys when asked to. None is success.
func (a *Activities) Remove(ctx context.Context, in RemoveIn) (activities.Nothing, error) {
	if err := checkUID(in.Server); err != nil {
		return activities.Nothing{}, err
	}
	failed := a.removeSeeds(in.Server, "")
	if in.Secrets {
		failed = errors.Join(failed, sshkeys.Delete(ctx, a.cfg.Secrets, in.Server.UID))
	}
	return activities.Nothing{}, failed
}

// removeSeeds deletes the seeds of a server but the file named keep.
func (a *Activities) removeSeeds(server activities.Server, keep string) error {
	var failed error
	entries, err := os.ReadDir(a.cfg.Dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		failed = fileError(server, "list seeds", err)
	}
	for _, e := range entries {
		if e.Name() == keep || !owned(e.Name(), server.UID) {
			continue
		}
		if err := os.Remove(filepath.Join(a.cfg.Dir, e.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			failed = errors.Join(failed, fileError(server, "delete seed", err))
		}
	}
	return failed
}

// owned reports whether a file is a seed of that uid, or what an interrupted write left.
func owned(name, uid string) bool {
	return strings.HasPrefix(strings.TrimPrefix(name, "."), uid+"-")
}

// checkUID refuses a uid that is none: it becomes part of a file's name.
func checkUID(s activities.Server) error {
	if _, err := uuid.Parse(s.UID); err != nil {
		return errs.NewPermanent(s.Ref(), "use uid", errs.Reason("%w: %q is not a UUID", errs.ErrInvalid, s.UID), "")
	}
	return nil
}

// configOf says what the guest is told. Its first user is the one burrow logs in as.
func configOf(in WriteIn, keys sshkeys.Keys) cloudinit.Config {
	cfg := cloudinit.Config{
		InstanceID: instanceID(in), Hostname: in.Hostname,
		HostKeyPEM: string(keys.HostPEM), HostKeyLine: keys.HostKeyLine(), Ports: in.Ports,
	}
	if in.CloudInit != nil {
		cfg.UserData, cfg.NetworkConfig = in.CloudInit.UserData, in.CloudInit.NetworkConfig
	}
	logins := append([]string{}, in.Keys...)
	logins = append(logins, keys.ManagementLine())
	names := in.Auth.Users
	if len(names) == 0 {
		names = []string{in.Login}
	}
	for _, name := range names {
		cfg.Users = append(cfg.Users, cloudinit.User{Name: name, Keys: logins, ImageDefault: name == in.Login})
	}
	return cfg
}

// about names the server in a driver's error and keeps its class.
func about(s activities.Server, action string, err error) error {
	return errs.New(errs.ClassOf(err), s.Ref(), action, err, "")
}
