package cli

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"burrow.dev/burrow/internal/blob"
	"burrow.dev/burrow/internal/gateway"
)

// countedBlobs is a store that counts what is written into it.
type countedBlobs struct {
	*blob.Store
	puts atomic.Int32
}

func (c *countedBlobs) Put(ctx context.Context, key string, r io.Reader) error {
	c.puts.Add(1)
	return c.Store.Put(ctx, key, r)
}

func TestAFolderThatIsStoredAlreadyIsNotSentAgain(t *testing.T) {
	w := newWorld(t)
	store, err := blob.Open(t.Context(), "file://"+t.TempDir())
	require.NoError(t, err)
	t.Cleanup(func() { _ = store.Close() })
	blobs := &countedBlobs{Store: store}
	w.deps.Blobs = blobs
	w.start()
	gw, err := gateway.Dial(t.Context(), w.socket)
	require.NoError(t, err)
	t.Cleanup(func() { _ = gw.Close() })
	send := func(text string) {
		t.Helper()
		dir := t.TempDir() // another folder each time, at another time
		require.NoError(t, os.WriteFile(filepath.Join(dir, "site.yaml"), []byte(text), 0o600))
		p := &plan{}
		defer p.close()
		_, err := p.packAll(dir)
		require.NoError(t, err)
		require.NoError(t, p.upload(t.Context(), gw))
	}
	send("- hosts: all\n")
	send("- hosts: all\n")
	require.EqualValues(t, 1, blobs.puts.Load(), "the same content is stored once")
	send("- hosts: db\n")
	require.EqualValues(t, 2, blobs.puts.Load())
}
