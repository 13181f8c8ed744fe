// Package qemuuser knows the user that libvirt runs guests as, and what that user can
// reach. libvirt hands a guest's own files to it when the guest starts; the folders above
// them it leaves alone, and one of mode 0700 there gives "Permission denied" long after
// the file was made (pitfall 5).
package qemuuser

import (
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"syscall"

	"burrow.dev/burrow/internal/errs"
)

// Access is a set of permission bits.
type Access uint32

// Permissions.
const (
	Enter Access = 1 << iota // pass through a folder
	Write
	Read
)

// rootUID may pass everywhere.
const rootUID = "0"

// User is QEMU's user with its groups.
type User struct {
	Name   string
	UID    string
	Groups []string
}

// confFile is where an operator can choose another user.
const confFile = "/etc/libvirt/qemu.conf"

var confUser = regexp.MustCompile(`(?m)^\s*user\s*=\s*"\+?([^"]+)"`)

// Lookup finds the user: the one that qemu.conf names, else libvirt-qemu (Debian and
// Ubuntu) or qemu (elsewhere).
func Lookup() (User, error) { return lookup(confFile) }

func lookup(conf string) (User, error) {
	names := []string{"libvirt-qemu", "qemu"}
	if text, err := os.ReadFile(conf); err == nil {
		if m := confUser.FindSubmatch(text); m != nil {
			names = []string{string(m[1])}
		}
	}
	if names[0] == "root" || names[0] == "0" {
		return User{Name: "root", UID: rootUID}, nil
	}
	for _, name := range names {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		groups, err := u.GroupIds()
		if err != nil {
			return User{}, errs.NewTransient("user "+name, "look up groups", err)
		}
		return User{Name: name, UID: u.Uid, Groups: groups}, nil
	}
	return User{}, errs.NewOperator("host", "find QEMU's user",
		errs.Reason("%w: none of %v exists", errs.ErrNotFound, names), "install libvirt-daemon-system")
}

// May reports whether the permission bits of a file let the user do all of want.
func (u User) May(info fs.FileInfo, want Access) bool {
	if u.UID == rootUID {
		return true
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return false
	}
	mode := Access(info.Mode().Perm())
	switch {
	case strconv.Itoa(int(st.Uid)) == u.UID:
		mode >>= 6
	case slices.Contains(u.Groups, strconv.Itoa(int(st.Gid))):
		mode >>= 3
	}
	return mode&want == want
}

// CheckReach makes sure that the user can pass through every folder above path. The first
// that it cannot is named with the mend, as an Operator error.
func (u User) CheckReach(path string) error {
	var folders []string
	for dir := filepath.Dir(filepath.Clean(path)); ; dir = filepath.Dir(dir) {
		folders = append(folders, dir)
		if dir == filepath.Dir(dir) {
			break
		}
	}
	slices.Reverse(folders)
	for _, dir := range folders {
		info, err := os.Stat(dir)
		if err != nil {
			return errs.NewOperator("folder "+dir, "look at", err, "")
		}
		if !u.May(info, Enter) {
			return errs.NewOperator("folder "+dir, "check permissions",
				errs.Reason("QEMU's user %s cannot pass through it (mode %04o) to %s", u.Name, info.Mode().Perm(), path),
				"chmod o+x "+dir+", then: burrow retry")
		}
	}
	return nil
}
