package libvirtx_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	"libvirt.org/go/libvirtxml"

	"burrow.dev/burrow/internal/errs"
)

func volume(name, format string, bytes uint64) *libvirtxml.StorageVolume {
	return &libvirtxml.StorageVolume{
		Name: name, Capacity: &libvirtxml.StorageVolumeSize{Value: bytes},
		Target: &libvirtxml.StorageVolumeTarget{Format: &libvirtxml.StorageVolumeTargetFormat{Type: format}},
	}
}

func TestEnsuringAPoolTwiceChangesNothing(t *testing.T) {
	c := connect(t)
	name, dir := pool(t, c)
	require.NoError(t, c.EnsurePool(t.Context(), name, dir+"/"))
	got, err := c.PoolDir(t.Context(), name)
	require.NoError(t, err)
	require.Equal(t, dir, got)
}

func TestAPoolOnAnotherFolderIsRefused(t *testing.T) {
	c := connect(t)
	name, _ := pool(t, c)
	err := c.EnsurePool(t.Context(), name, t.TempDir())
	require.ErrorIs(t, err, errs.ErrNotManaged)
	require.Equal(t, errs.Permanent, errs.ClassOf(err))
}

func TestAPoolWhoseFolderWasRemovedIsBuiltAgain(t *testing.T) {
	c := connect(t)
	name, dir := pool(t, c)
	require.NoError(t, os.RemoveAll(dir))
	require.NoError(t, c.EnsurePool(t.Context(), name, dir))
	require.NoError(t, c.CreateVolume(t.Context(), name, volume("a.qcow2", "qcow2", 1<<20)))
}

func TestAMissingPoolNamesItselfAndTheMend(t *testing.T) {
	err := connect(t).CreateVolume(t.Context(), "nowhere", volume("a.raw", "raw", 1))
	require.ErrorIs(t, err, errs.ErrNotFound)
	require.Equal(t, errs.Operator, errs.ClassOf(err))
	require.ErrorContains(t, err, "nowhere")
}

func TestAVolumeLivesFromCreateToDelete(t *testing.T) {
	c := connect(t)
	p, dir := pool(t, c)
	ctx := t.Context()
	_, err := c.Volume(ctx, p, "v.qcow2")
	require.ErrorIs(t, err, errs.ErrNotFound)

	require.NoError(t, c.CreateVolume(ctx, p, volume("v.qcow2", "qcow2", 8<<20)))
	require.ErrorIs(t, c.CreateVolume(ctx, p, volume("v.qcow2", "qcow2", 8<<20)), errs.ErrExists)
	require.NoError(t, c.ResizeVolume(ctx, p, "v.qcow2", 16<<20))
	got, err := c.Volume(ctx, p, "v.qcow2")
	require.NoError(t, err)
	require.Equal(t, uint64(16<<20), got.Capacity.Value)
	require.Equal(t, "qcow2", got.Target.Format.Type)
	require.Equal(t, filepath.Join(dir, "v.qcow2"), got.Target.Path)

	require.NoError(t, c.DeleteVolume(ctx, p, "v.qcow2"))
	require.ErrorIs(t, c.DeleteVolume(ctx, p, "v.qcow2"), errs.ErrNotFound)
	require.NoFileExists(t, got.Target.Path)
}

func TestAVolumeCanBeLinkedToAndCopied(t *testing.T) {
	c := connect(t)
	p, dir := pool(t, c)
	ctx := t.Context()
	content := bytes.Repeat([]byte("burrow\n"), 100_000)
	require.NoError(t, c.CreateVolume(ctx, p, volume("base.raw", "raw", uint64(len(content)))))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "base.raw"), content, 0o600))

	linked := volume("linked.qcow2", "qcow2", 4<<20)
	linked.BackingStore = &libvirtxml.StorageVolumeBackingStore{
		Path: filepath.Join(dir, "base.raw"), Format: &libvirtxml.StorageVolumeTargetFormat{Type: "raw"},
	}
	require.NoError(t, c.CreateVolume(ctx, p, linked))
	got, err := c.Volume(ctx, p, "linked.qcow2")
	require.NoError(t, err)
	require.Equal(t, filepath.Join(dir, "base.raw"), got.BackingStore.Path)

	require.NoError(t, c.CloneVolume(ctx, p, volume("copy.raw", "raw", 4<<20), "linked.qcow2"))
	copied, err := os.ReadFile(filepath.Join(dir, "copy.raw"))
	require.NoError(t, err)
	require.True(t, bytes.HasPrefix(copied, content))
}

func TestAFileThatLibvirtHadNotSeenIsFoundWhenItStandsInTheWay(t *testing.T) {
	c := connect(t)
	p, dir := pool(t, c)
	ctx := t.Context()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "half.qcow2"), []byte("half"), 0o600))
	_, err := c.Volume(ctx, p, "half.qcow2")
	require.ErrorIs(t, err, errs.ErrNotFound)
	require.ErrorIs(t, c.CreateVolume(ctx, p, volume("half.qcow2", "qcow2", 1<<20)), errs.ErrExists)
	_, err = c.Volume(ctx, p, "half.qcow2")
	require.NoError(t, err)
}

func TestTwentyVolumesAreMadeAtOnceWhileThePoolIsRefreshed(t *testing.T) {
	c := connect(t)
	p, _ := pool(t, c)
	g, ctx := errgroup.WithContext(t.Context())
	for i := range 20 {
		g.Go(func() error { return c.CreateVolume(ctx, p, volume(fmt.Sprintf("v%d.qcow2", i), "qcow2", 1<<20)) })
		if i%5 == 0 {
			g.Go(func() error { return c.RefreshPool(ctx, p) })
		}
	}
	require.NoError(t, g.Wait())
	for i := range 20 {
		g.Go(func() error { return c.DeleteVolume(t.Context(), p, fmt.Sprintf("v%d.qcow2", i)) })
	}
	require.NoError(t, g.Wait())
}
