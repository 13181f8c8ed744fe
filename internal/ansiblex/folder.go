package ansiblex

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"burrow.dev/burrow/internal/errs"
)

// Files and folders of a run, below its own.
const (
	recordFile  = "run.json"
	logFile     = "log.txt"
	eventsFile  = "events.jsonl"
	dialSocket  = "dial.sock"
	agentSocket = "agent.sock"
	varsFile    = "etc/vars.json"
	vaultFile   = "etc/vault-password"
	becomeFile  = "etc/become-password"

	// galaxyDir is where ansible-galaxy installs, below a folder that the run cannot change.
	galaxyDir      = "galaxy"
	rolesDir       = "roles"
	collectionsDir = "collections"
)

// plainPath is what a path may consist of, so that it means itself to a shell, to
// ssh_config (%), to Jinja ({{) and in Ansible's comma lists.
var plainPath = regexp.MustCompile(`^/[A-Za-z0-9/._+-]+$`)

// maxSocketDir leaves room in a socket's path (108 bytes) for "/work/cp/", ten
// characters and the 17 that ssh appends while it sets a control socket up.
const maxSocketDir = 70

// Folder is the folder of one run.
type Folder struct {
	ID   string
	Dir  string
	user User
}

// NewRunID gives a name for a run that sorts by time: "20260102-150405-1f3a".
func NewRunID(now time.Time) string {
	var b [2]byte
	_, _ = rand.Read(b[:]) // never fails; see crypto/rand
	return now.UTC().Format("20060102-150405") + "-" + hex.EncodeToString(b[:])
}

// MakeFolder makes the folder of run rec.ID below runsDir with rec in it. From the moment
// it exists under its name it has a record, so Reap can tell whose it is.
func MakeFolder(runsDir string, user User, rec Record) (*Folder, error) {
	f := &Folder{ID: rec.ID, Dir: filepath.Join(runsDir, rec.ID), user: user}
	if err := checkRunsDir(runsDir, f.Dir, user); err != nil {
		return nil, err
	}
	fresh := filepath.Join(runsDir, ".new-"+rec.ID)
	if err := f.populate(fresh, rec); err != nil {
		return nil, errors.Join(errs.NewTransient("run folder "+f.Dir, "make", err), os.RemoveAll(fresh))
	}
	if err := os.Rename(fresh, f.Dir); err != nil {
		return nil, errors.Join(errs.NewTransient("run folder "+f.Dir, "make", err), os.RemoveAll(fresh))
	}
	return f, nil
}

// OpenFolder gives the folder of a run that exists, to end it or read its log.
func OpenFolder(runsDir, id string) *Folder {
	return &Folder{ID: id, Dir: filepath.Join(runsDir, id)}
}

func checkRunsDir(runsDir, dir string, user User) error {
	if !plainPath.MatchString(dir) || len(dir) > maxSocketDir {
		return errs.NewOperator("run folder "+dir, "make", errs.Reason("the path must be plain and at most %d bytes long", maxSocketDir),
			"move the data directory")
	}
	if err := os.MkdirAll(runsDir, 0o711); err != nil {
		return errs.NewTransient("run folder "+dir, "make", err)
	}
	if bad, ok := mayPass(dir); !ok && !user.own() {
		return errs.NewOperator("run folder "+dir, "make", errs.Reason("user %s may not pass %s", user.Name, bad), "chmod o+x "+bad)
	}
	return nil
}

// populate makes the tree. The keeper keeps what the run must not change.
func (f *Folder) populate(dir string, rec Record) error {
	if err := os.Mkdir(dir, 0o710); err != nil {
		return err
	}
	if err := writeRecord(dir, rec); err != nil {
		return err
	}
	for _, name := range []string{"etc", "etc/keys", "etc/plugins"} {
		if err := f.mkdir(filepath.Join(dir, name), 0o750, keeper()); err != nil {
			return err
		}
	}
	for _, name := range []string{"work", "work/bundle", "work/home", "work/tmp", "work/cp", "work/facts", galaxyDir} {
		if err := f.mkdir(filepath.Join(dir, name), 0o700, f.user.UID); err != nil {
			return err
		}
	}
	return os.Chown(dir, keeper(), f.user.GID)
}

// keeper owns what the run must not change: root, but in a check of one's own playbooks.
func keeper() int { return os.Geteuid() }

func (f *Folder) mkdir(path string, mode fs.FileMode, uid int) error {
	if err := os.Mkdir(path, mode); err != nil {
		return err
	}
	if err := os.Chmod(path, mode); err != nil { // whatever the umask
		return err
	}
	return os.Chown(path, uid, f.user.GID)
}

// Path gives a path in the run's folder.
func (f *Folder) Path(elem ...string) string {
	return filepath.Join(append([]string{f.Dir}, elem...)...)
}

// Bundle is where the playbook's folder is unpacked, before Prepare.
func (f *Folder) Bundle() string { return f.Path("work", "bundle") }

// DialSocket and AgentSocket are where the run's connections and signatures are served.
func (f *Folder) DialSocket() string { return f.Path(dialSocket) }

// AgentSocket see DialSocket.
func (f *Folder) AgentSocket() string { return f.Path(agentSocket) }

// LogFile is what Ansible prints, cleaned, while it runs.
func (f *Folder) LogFile() string { return f.Path(logFile) }

// give writes a file that the run may read and not change.
func (f *Folder) give(name string, data []byte) error {
	path := f.Path(name)
	if err := os.WriteFile(path, data, 0o640); err != nil {
		return err
	}
	return os.Chown(path, keeper(), f.user.GID)
}

// entrust writes a file that the run's user alone may read.
func (f *Folder) entrust(name string, data []byte) error {
	path := f.Path(name)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		return err
	}
	return os.Chown(path, f.user.UID, f.user.GID)
}

// OwnSocket hands a socket to the run: only it (and root) may connect.
func (f *Folder) OwnSocket(path string) error {
	if err := os.Chmod(path, 0o600); err != nil {
		return err
	}
	return os.Lchown(path, f.user.UID, f.user.GID)
}

// handOver gives the bundle's files to the user. Nothing of the user runs yet.
func (f *Folder) handOver() error {
	return filepath.WalkDir(f.Bundle(), func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, f.user.UID, f.user.GID)
	})
}

// Remove deletes the folder. It may contain anything; RemoveAll follows no symlink.
func (f *Folder) Remove() error {
	if err := os.RemoveAll(f.Dir); err != nil {
		return fmt.Errorf("remove run folder %s: %w", f.Dir, err)
	}
	return nil
}
