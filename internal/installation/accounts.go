package installation

import (
	"context"
	"errors"
	"os/exec"
	"os/user"
	"strconv"
	"strings"

	"burrow.dev/burrow/internal/config"
	"burrow.dev/burrow/internal/errs"
)

// Accounts are the system's groups and users.
type Accounts interface {
	// EnsureGroup makes a system group when there is none; made tells.
	EnsureGroup(ctx context.Context, name string) (gid int, made bool, err error)
	// EnsureUser makes a system user without home, shell and password when there is none.
	EnsureUser(ctx context.Context, name string) (made bool, err error)
}

// SystemAccounts uses groupadd and useradd.
type SystemAccounts struct{}

// EnsureGroup implements Accounts.
func (SystemAccounts) EnsureGroup(ctx context.Context, name string) (int, bool, error) {
	found, err := user.LookupGroup(name)
	made := false
	var unknown user.UnknownGroupError
	if errors.As(err, &unknown) {
		if err := run(ctx, "group "+name, "groupadd", "--system", name); err != nil {
			return 0, false, err
		}
		made = true
		found, err = user.LookupGroup(name)
	}
	if err != nil {
		return 0, made, errs.NewOperator("group "+name, "look up", err, "make it: groupadd --system "+name)
	}
	gid, err := strconv.Atoi(found.Gid)
	if err != nil {
		return 0, made, errs.NewOperator("group "+name, "read its id", err, "")
	}
	return gid, made, nil
}

// EnsureUser implements Accounts.
func (SystemAccounts) EnsureUser(ctx context.Context, name string) (bool, error) {
	_, err := user.Lookup(name)
	var unknown user.UnknownUserError
	if !errors.As(err, &unknown) {
		if err != nil {
			return false, errs.NewOperator("user "+name, "look up", err, "")
		}
		return false, nil
	}
	return true, run(ctx, "user "+name, "useradd", "--system", "--user-group", "--no-create-home",
		"--home-dir", "/nonexistent", "--shell", "/usr/sbin/nologin", name)
}

// run runs a program of the system's account tools; they may live where PATH does not look.
func run(ctx context.Context, object, program string, args ...string) error {
	path, err := exec.LookPath(program)
	if err != nil {
		path = "/usr/sbin/" + program
	}
	output, err := exec.CommandContext(ctx, path, args...).CombinedOutput()
	if err != nil {
		return errs.NewOperator(object, "make with "+program, errs.Reason("%w: %s", err, strings.TrimSpace(string(output))),
			"make it by hand: "+program+" "+strings.Join(args, " "))
	}
	return nil
}

// ensureAccounts makes what is missing and says what it made.
func ensureAccounts(ctx context.Context, accounts Accounts) (gid int, said []string, err error) {
	gid, made, err := accounts.EnsureGroup(ctx, config.Group)
	if err != nil {
		return 0, nil, err
	}
	if made {
		said = append(said, "made group "+config.Group+": its members may use burrow, which is as good as root (sudo usermod -aG "+config.Group+" NAME)")
	}
	made, err = accounts.EnsureUser(ctx, config.AnsibleUser)
	if err != nil {
		return gid, said, err
	}
	if made {
		said = append(said, "made user "+config.AnsibleUser+": playbooks run as it, and it owns nothing")
	}
	return gid, said, nil
}
