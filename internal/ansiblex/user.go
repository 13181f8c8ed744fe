package ansiblex

import (
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"

	"burrow.dev/burrow/internal/errs"
)

// User is the unprivileged account that runs users' playbooks.
type User struct {
	Name     string
	UID, GID int
}

// LookupUser finds the account. Absent is an Operator error that says how to make it.
func LookupUser(name string) (User, error) {
	u, err := user.Lookup(name)
	if err != nil {
		return User{}, errs.NewOperator("user "+name, "look up", err, fmt.Sprintf(
			"make it: useradd --system --home-dir /nonexistent --shell /usr/sbin/nologin %s", name))
	}
	uid, err1 := strconv.Atoi(u.Uid)
	gid, err2 := strconv.Atoi(u.Gid)
	if err1 != nil || err2 != nil || uid == 0 {
		return User{}, errs.NewOperator("user "+name, "use for playbooks", errs.Reason("uid %s is not that of an unprivileged user", u.Uid), "")
	}
	return User{Name: name, UID: uid, GID: gid}, nil
}

// CheckUser is the account for a syntax check of the caller's own playbooks: the caller's.
// For root it is nobody, since a check may start what the folder has: scripts, plugins.
func CheckUser() (User, error) {
	if os.Geteuid() == 0 {
		return LookupUser("nobody")
	}
	return User{Name: strconv.Itoa(os.Geteuid()), UID: os.Geteuid(), GID: os.Getegid()}, nil
}

// own reports whether it is this process's account: there is no right to change to it, and no need.
func (u User) own() bool { return u.UID == os.Geteuid() }

func (u User) credential() *syscall.Credential {
	if u.own() {
		return nil
	}
	// No supplementary groups: NoSetGroups stays false, Groups empty.
	return &syscall.Credential{Uid: uint32(u.UID), Gid: uint32(u.GID)}
}

// mayPass reports whether everybody, hence the unprivileged user, may reach path:
// every folder above it is executable for others.
func mayPass(path string) (bad string, ok bool) {
	for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
		info, err := os.Stat(dir)
		if err != nil || info.Mode().Perm()&0o001 == 0 {
			return dir, false
		}
		if dir == filepath.Dir(dir) {
			return "", true
		}
	}
}
