package inguest

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"burrow.dev/burrow/internal/blob"
	"burrow.dev/burrow/internal/bundle"
	"burrow.dev/burrow/internal/errs"
)

// Bundles is the blob store.
type Bundles interface {
	// Get gives a blob whose bytes are those of its key; errs.ErrNotFound when there is none.
	Get(ctx context.Context, key string) (io.ReadCloser, error)
}

// Pack fills p.Archive from the bundle with a digest, unless the guest fetches the playbook
// itself. The same bundle gives the same bytes. A bundle that is not stored → Permanent.
func (p *Play) Pack(ctx context.Context, from Bundles, digest string) error {
	if p.Spec.Pull != nil {
		return nil
	}
	object := "server/" + p.Host.Name
	key, err := blob.BundleKey(digest)
	if err != nil {
		return err
	}
	r, err := from.Get(ctx, key)
	if errors.Is(err, errs.ErrNotFound) {
		return errs.NewPermanent(object, "get its playbook's folder", err, "apply again, which uploads it")
	}
	if err != nil {
		return errs.NewTransient(object, "get its playbook's folder", err)
	}
	defer r.Close()
	dir, err := os.MkdirTemp("", "burrow-play-")
	if err != nil {
		return errs.NewTransient(object, "unpack its playbook's folder", err)
	}
	defer os.RemoveAll(dir)
	if err := bundle.Unpack(r, dir); err != nil {
		return err
	}
	p.Archive, err = gzipped(dir)
	return err
}

// gzipped is a folder as tar, gzipped: what every guest can unpack. WalkDir goes in the order
// of names, and no times are kept.
func gzipped(dir string) ([]byte, error) {
	var out bytes.Buffer
	packed := gzip.NewWriter(&out)
	w := tar.NewWriter(packed)
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		return addEntry(w, dir, path, d)
	})
	err = errors.Join(err, w.Close(), packed.Close())
	return out.Bytes(), err
}

func addEntry(w *tar.Writer, dir, path string, d fs.DirEntry) error {
	info, err := d.Info()
	if err != nil {
		return err
	}
	target := ""
	if info.Mode()&fs.ModeSymlink != 0 {
		if target, err = os.Readlink(path); err != nil {
			return err
		}
	}
	rel, err := filepath.Rel(dir, path)
	if err != nil {
		return err
	}
	header := &tar.Header{Name: filepath.ToSlash(rel), Mode: int64(info.Mode().Perm()), Linkname: target, Typeflag: tar.TypeReg}
	switch {
	case info.IsDir():
		header.Typeflag = tar.TypeDir
	case target != "":
		header.Typeflag = tar.TypeSymlink
	default:
		header.Size = info.Size()
	}
	if err := w.WriteHeader(header); err != nil || header.Typeflag != tar.TypeReg {
		return err
	}
	content, err := os.Open(path)
	if err != nil {
		return err
	}
	defer content.Close()
	_, err = io.Copy(w, content)
	return err
}

// Sent is the run's files as tar, with names inside the run's folder: for a guest that runs.
func (p Play) Sent() ([]byte, error) {
	files, err := p.Files()
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, f := range files {
		rel, err := filepath.Rel(p.Dir(), f.Path)
		if err != nil {
			return nil, err
		}
		if err := w.WriteHeader(&tar.Header{Name: rel, Mode: int64(f.Mode), Size: int64(len(f.Content))}); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.Content); err != nil {
			return nil, err
		}
	}
	err = w.Close()
	return out.Bytes(), err
}
