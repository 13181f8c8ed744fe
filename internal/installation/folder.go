package installation

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"burrow.dev/burrow/internal/config"
	"burrow.dev/burrow/internal/errs"
)

const (
	// folderMode lets the group and QEMU's user reach what they may read, by name.
	folderMode fs.FileMode = 0o711
	// socketPathMost is what Linux allows for a unix socket, without the final NUL;
	// the gateway makes its socket in a folder of eleven characters first.
	socketPathMost = 107 - 12
)

// Folder is a data directory.
type Folder string

// OpenFolder makes the data directory, or checks that the one that is there is
// Burrow's: a folder with other things in it is refused, since modes are changed and
// files are written.
func OpenFolder(path string) (Folder, error) {
	absolute, err := filepath.Abs(path)
	if err != nil {
		return "", errs.NewPermanent("data directory "+path, "open", err, "")
	}
	folder := Folder(absolute)
	object := "data directory " + absolute
	if len(folder.Socket()) > socketPathMost {
		return "", errs.NewPermanent(object, "open", errs.Reason("%w: the path is too long for a socket in it", errs.ErrInvalid), "choose a shorter one with --data-dir")
	}
	entries, err := os.ReadDir(absolute)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if err := os.MkdirAll(filepath.Dir(absolute), 0o755); err != nil {
			return "", errs.NewOperator(object, "make", err, "run as root, or choose another one with --data-dir")
		}
		if err := os.Mkdir(absolute, folderMode); err != nil && !errors.Is(err, fs.ErrExist) {
			return "", errs.NewOperator(object, "make", err, "run as root, or choose another one with --data-dir")
		}
	case err != nil:
		return "", errs.NewOperator(object, "open", err, "run as root")
	case len(entries) > 0 && !folder.ours():
		return "", errs.NewPermanent(object, "open", errs.Reason("%w: it holds other things (%s, …)", errs.ErrNotManaged, entries[0].Name()),
			"name a new or empty folder with --data-dir")
	}
	if err := os.Chmod(absolute, folderMode); err != nil {
		return "", errs.NewOperator(object, "set mode", err, "run as root")
	}
	return folder, nil
}

// ours says that an earlier `burrow up` made the folder.
func (f Folder) ours() bool {
	for _, name := range []string{"up.lock", config.WorkerFile, "log"} {
		if _, err := os.Lstat(f.path(name)); err == nil {
			return true
		}
	}
	return false
}

func (f Folder) path(names ...string) string {
	return filepath.Join(append([]string{string(f)}, names...)...)
}

// ClientFile is client.json.
func (f Folder) ClientFile() string { return f.path(config.ClientFile) }

// WorkerFile is worker.json.
func (f Folder) WorkerFile() string { return f.path(config.WorkerFile) }

// MasterKey is the first master key; others stand beside it.
func (f Folder) MasterKey() string { return f.path("master.key") }

// Socket is the gateway's.
func (f Folder) Socket() string { return f.path("gateway.sock") }

// TLS is the folder of certificates.
func (f Folder) TLS() string { return f.path("tls") }

// LogDir holds one log for each part, and the supervisor's own, up.log.
func (f Folder) LogDir() string { return f.path("log") }

// DevstackReport is the devstack's readiness report.
func (f Folder) DevstackReport() string { return f.path("run", "devstack.json") }

// RemoveLeftovers removes what killed parts leave behind and nobody serves any more.
// Nothing there is success. Call it when no part runs.
func (f Folder) RemoveLeftovers() error {
	for _, path := range []string{f.Socket(), f.DevstackReport()} {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return errs.NewOperator(path, "remove", err, "run as root")
		}
	}
	return f.removeSnapshots(time.Now())
}
