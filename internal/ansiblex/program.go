package ansiblex

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"burrow.dev/burrow/internal/errs"
)

// ReachableProgram gives a path under which the unprivileged user may start the program
// at path: itself, or, where a folder above it is closed to others (somebody's home), a
// copy in runsDir. The copy is made again when the program has changed.
func ReachableProgram(runsDir, path string) (string, error) {
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", errs.NewOperator("program "+path, "find", err, "")
	}
	info, err := os.Stat(path)
	if err != nil {
		return "", errs.NewOperator("program "+path, "find", err, "")
	}
	if _, ok := mayPass(path); ok && info.Mode().Perm()&0o005 == 0o005 && plainPath.MatchString(path) {
		return path, nil
	}
	// Size and time name the copy: another program gets another one.
	name := fmt.Sprintf(".burrow-%x-%x", info.Size(), info.ModTime().UnixNano())
	to := filepath.Join(runsDir, name)
	if _, err := os.Stat(to); err == nil {
		return to, nil
	}
	if err := copyProgram(path, to); err != nil {
		return "", errs.NewTransient("program "+path, "copy to "+to, err)
	}
	old, _ := filepath.Glob(filepath.Join(runsDir, ".burrow-*"))
	for _, f := range old {
		if f != to {
			_ = os.Remove(f) // what runs from it keeps running
		}
	}
	return to, nil
}

func copyProgram(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.CreateTemp(filepath.Dir(to), ".new-burrow-")
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	err = errors.Join(err, out.Chmod(0o755), out.Close())
	if err == nil {
		err = os.Rename(out.Name(), to)
	}
	if err != nil {
		return errors.Join(err, os.Remove(out.Name()))
	}
	return nil
}
