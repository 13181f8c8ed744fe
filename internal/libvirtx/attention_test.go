package libvirtx_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
	"libvirt.org/go/libvirtxml"

	"burrow.dev/burrow/internal/libvirtx"
)

// filler is a boot sector that writes its disk full: sector after sector by the firmware's
// extended write.
func filler() []byte {
	code := []byte{
		0x31, 0xc0, // xor ax, ax
		0x8e, 0xd8, // mov ds, ax
		0xbe, 0x18, 0x7c, // mov si, packet
		0xb8, 0x00, 0x43, // mov ax, 4300h        <─┐
		0xb2, 0x80, // mov dl, 80h             │
		0xcd, 0x13, // int 13h                 │
		0x66, 0x83, 0x06, 0x20, 0x7c, 0x40, // add dword [packet+8], 64
		0xeb, 0xf1, // jmp                    ─┘
		0, 0,
		0x10, 0, 64, 0, 0, 0x80, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, // packet: 64 sectors from 0000:8000 to sector 1
	}
	sector := make([]byte, 512)
	copy(sector, code)
	sector[510], sector[511] = 0x55, 0xaa
	return sector
}

// Pitfall 15: a guest on a full disk is paused, and that must be told from a pause that
// somebody asked for.
func TestAGuestWhoseDiskRunsFullIsReportedAsAnIOError(t *testing.T) {
	dir, err := os.MkdirTemp("/var/lib/libvirt", "full")
	require.NoError(t, err)
	require.NoError(t, os.Chmod(dir, 0o711))
	require.NoError(t, unix.Mount("tmpfs", dir, "tmpfs", 0, "size=1m,mode=0711"))
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	path := filepath.Join(dir, "disk.raw")
	require.NoError(t, os.WriteFile(path, filler(), 0o600))
	require.NoError(t, os.Truncate(path, 64<<20))

	c := connect(t)
	events := c.Events(t.Context())
	await(t, events, libvirtx.EventConnected, "")
	d := guest(t, c)
	d.Devices.Disks = []libvirtxml.DomainDisk{{
		Device: "disk", Driver: &libvirtxml.DomainDiskDriver{Name: "qemu", Type: "raw"},
		Source: &libvirtxml.DomainDiskSource{File: &libvirtxml.DomainDiskSourceFile{File: path}},
		Target: &libvirtxml.DomainDiskTarget{Dev: "vda", Bus: "virtio"},
	}}
	require.NoError(t, c.DefineDomain(t.Context(), d))
	require.NoError(t, c.StartPaused(t.Context(), d.UUID))
	require.NoError(t, c.Resume(t.Context(), d.UUID))
	await(t, events, libvirtx.EventResumed, d.UUID)
	require.Equal(t, "ioerror", await(t, events, libvirtx.EventSuspended, d.UUID).Detail)
	state, reason, err := c.DomainState(t.Context(), d.UUID)
	require.NoError(t, err)
	require.Equal(t, "paused", state)
	require.Equal(t, "ioerror", reason)
}

func TestAClosedConnectionLeavesNoGoroutineBehind(t *testing.T) {
	before := goleak.IgnoreCurrent()
	c := libvirtx.New("", nil)
	d := guest(t, c)
	require.NoError(t, c.StartPaused(t.Context(), d.UUID))
	con, err := c.Console(t.Context(), d.UUID)
	require.NoError(t, err)
	require.NoError(t, con.Close())
	require.NoError(t, c.Destroy(t.Context(), d.UUID))
	require.NoError(t, c.Undefine(t.Context(), d.UUID))
	require.NoError(t, c.Close())
	_, _, err = c.DomainState(t.Context(), d.UUID)
	require.Error(t, err, "closed is closed")
	goleak.VerifyNone(t, before, goleak.IgnoreAnyFunction("burrow.dev/burrow/internal/libvirtx.runEventLoop"))
}
