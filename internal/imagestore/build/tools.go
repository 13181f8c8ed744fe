package build

import (
	"fmt"
	"os/exec"
	"strings"

	"burrow.dev/burrow/internal/errs"
)

// Tools maps each program that a build runs to the Debian package that has it.
func Tools() map[string]string {
	return map[string]string{
		"mmdebstrap": "mmdebstrap",
		"apt-get":    "apt",
		"unshare":    "util-linux",
		"sfdisk":     "fdisk",
		"mke2fs":     "e2fsprogs",
		"qemu-img":   "qemu-utils",
	}
}

// checkTools finds every program, or says which packages to install (Operator).
func checkTools(object string, look func(string) (string, error)) error {
	var programs, install []string
	for program, pkg := range Tools() {
		if _, err := look(program); err != nil {
			programs, install = append(programs, program), append(install, pkg)
		}
	}
	if len(programs) == 0 {
		return nil
	}
	return errs.NewOperator(object, "build",
		fmt.Errorf("%w: %s is not installed: %w", errs.ErrUnavailable, strings.Join(programs, ", "), exec.ErrNotFound),
		"apt-get install "+strings.Join(install, " "))
}
