package cli

import (
	"errors"
	"io"
	"os"
	"time"

	"burrow.dev/burrow/internal/ansiblex"
	"burrow.dev/burrow/internal/bundle"
)

// inScratch unpacks a playbook's folder for Ansible to look at with the caller's rights
// (root's: nobody's), and removes it when look returns.
func inScratch(owner string, archive io.Reader, look func(*ansiblex.Folder) error) (err error) {
	user, err := ansiblex.CheckUser()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "burrow-check-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := os.Chmod(dir, 0o711); err != nil {
		return err
	}
	now := time.Now()
	folder, err := ansiblex.MakeFolder(dir, user, ansiblex.Record{ID: ansiblex.NewRunID(now), Owner: owner, CreatedAt: now})
	if err != nil {
		return err
	}
	if err := bundle.Unpack(archive, folder.Bundle()); err != nil {
		return err
	}
	return look(folder)
}
