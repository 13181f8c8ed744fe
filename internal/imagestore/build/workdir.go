package build

import (
	"fmt"
	"os"
	"path/filepath"

	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/internal/imagestore/diskfile"
)

const (
	// workPrefix begins the name of a build's work folder.
	workPrefix = ".build-"
	// needBytes is what a build needs at its peak: packages, root folder, raw and qcow2 disk.
	needBytes = 1800 << 20
)

// removeLeftovers removes the work folders of builds that were killed. The caller holds
// the lock, so nobody works in them.
func removeLeftovers(dir string) error {
	old, err := filepath.Glob(filepath.Join(dir, workPrefix+"*"))
	if err != nil {
		return err
	}
	for _, path := range old {
		if err := os.RemoveAll(path); err != nil {
			return err
		}
	}
	return nil
}

// checkSpace refuses (Operator) to begin what cannot fit.
func checkSpace(object, dir string) error {
	free, err := diskfile.Free(dir)
	if err != nil {
		return err
	}
	if free < needBytes {
		return errs.NewOperator(object, "build",
			fmt.Errorf("%w: %d MiB free in %s, %d MiB are needed", errs.ErrNoSpace, free>>20, dir, int64(needBytes)>>20),
			"make room there")
	}
	return nil
}
