package imagestore

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// testStore is a store in a folder of its own that does not wait long between attempts.
func testStore(t *testing.T) *Store {
	t.Helper()
	s := New(Options{Dir: t.TempDir(), Log: slog.New(slog.NewTextHandler(t.Output(), nil))})
	s.pause = time.Millisecond
	t.Cleanup(s.client.CloseIdleConnections)
	return s
}

func quiet(string, int64, int64) {}

// someDisk is a raw disk that a BIOS would boot, with noise in it.
func someDisk(seed uint64, size int) []byte {
	b := make([]byte, size)
	r := rand.New(rand.NewPCG(seed, 1))
	for i := range size / 2 {
		b[i] = byte(r.Uint32())
	}
	b[510], b[511] = 0x55, 0xaa
	return b
}

// someQcow2 is a qcow2 file of that disk.
func someQcow2(t *testing.T, seed uint64, size int) []byte {
	t.Helper()
	raw := filepath.Join(t.TempDir(), "raw")
	require.NoError(t, os.WriteFile(raw, someDisk(seed, size), 0o600))
	qemu(t, "convert", "-f", "raw", "-O", "qcow2", raw, raw+".qcow2")
	b, err := os.ReadFile(raw + ".qcow2")
	require.NoError(t, err)
	return b
}

func qemu(t *testing.T, args ...string) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "qemu-img", args...).CombinedOutput()
	require.NoError(t, err, "%s", out)
}

func sum(b []byte) string {
	s := sha256.Sum256(b)
	return hex.EncodeToString(s[:])
}

// volumes lists the files in a pool's folder.
func volumes(t *testing.T, pool string) []string {
	t.Helper()
	entries, err := os.ReadDir(pool)
	require.NoError(t, err)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func (s *Store) fetchTo(ctx context.Context, src Source) ([]byte, error) {
	d, err := s.Fetch(ctx, "image test", src, quiet)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	return os.ReadFile(d.Path)
}

var noise = bytes.Repeat([]byte{0, 1, 2, 3, 0xfe, 0xff, 0x80}, 40_000)
