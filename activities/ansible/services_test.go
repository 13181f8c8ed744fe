package ansible

import (
	"context"
	"crypto/ed25519"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/crypto/ssh"

	"burrow.dev/burrow/internal/errs"
)

// networks leads a network's name to a guest, whatever the address.
type networks map[string]*guest

func (n networks) DialNetwork(ctx context.Context, network, address string) (net.Conn, error) {
	g := n[network]
	if g == nil || !strings.HasSuffix(address, ":22") {
		return nil, errors.New("no route to host")
	}
	return (&net.Dialer{}).DialContext(ctx, "tcp", g.addr)
}

type keyring map[string]ssh.Signer

func (k keyring) Management(_ context.Context, uid string) (ssh.Signer, error) {
	if k[uid] == nil {
		return nil, errs.ErrNotFound
	}
	return k[uid], nil
}

// anyKey is a key service with one key for everybody.
type anyKey struct{}

func (anyKey) Management(context.Context, string) (ssh.Signer, error) {
	return ssh.NewSignerFromKey(ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)))
}

// blobs is the blob store: a folder.
type blobs struct{ dir string }

func (b blobs) Get(_ context.Context, key string) (io.ReadCloser, error) {
	f, err := os.Open(filepath.Join(b.dir, key))
	if errors.Is(err, os.ErrNotExist) {
		return nil, errs.ErrNotFound
	}
	return f, err
}

func (b blobs) Put(_ context.Context, key string, r io.Reader) error {
	data, err := io.ReadAll(r)
	path := filepath.Join(b.dir, key)
	return errors.Join(err, os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, data, 0o600))
}

func (b blobs) List(_ context.Context, prefix string) ([]string, error) {
	var keys []string
	found, err := filepath.Glob(filepath.Join(b.dir, prefix) + "/*")
	for _, f := range found {
		rel, _ := filepath.Rel(b.dir, f)
		keys = append(keys, rel)
	}
	return keys, err
}
