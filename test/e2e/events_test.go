package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"burrow.dev/burrow/internal/config"
	"burrow.dev/burrow/manifest"
)

// obedient is a boot sector that waits for a key, and powers off (p), resets (r) or fills
// its disk (w).
func obedient() []byte {
	code := []byte{
		0x31, 0xc0, // 00 xor ax, ax
		0x8e, 0xd8, // 02 mov ds, ax
		0x30, 0xe4, // 04 xor ah, ah              wait:
		0xcd, 0x16, // 06 int 16h
		0x3c, 'p', //  08 cmp al, 'p'
		0x74, 0x0a, // 0a je off
		0x3c, 'r', //  0c cmp al, 'r'
		0x74, 0x0f, // 0e je reset
		0x3c, 'w', //  10 cmp al, 'w'
		0x74, 0x10, // 12 je fill
		0xeb, 0xee, // 14 jmp wait
		0xba, 0x04, 0x06, // 16 mov dx, 604h      off: PM1a control of q35's firmware
		0xb8, 0x00, 0x20, // 19 mov ax, 2000h     sleep enable, S5
		0xef,       // 1c out dx, ax
		0xeb, 0xfe, // 1d jmp $
		0xb0, 0xfe, // 1f mov al, feh             reset: the keyboard controller's pulse
		0xe6, 0x64, // 21 out 64h, al
		0xf4,             // 23 hlt
		0xbe, 0x40, 0x7c, // 24 mov si, packet    fill:
		0xb8, 0x00, 0x43, // 27 mov ax, 4300h     again:
		0xb2, 0x80, // 2a mov dl, 80h
		0xcd, 0x13, // 2c int 13h
		0x66, 0x83, 0x06, 0x48, 0x7c, 0x40, // 2e add dword [packet+8], 64
		0xeb, 0xf1, // 34 jmp again
	}
	packet := []byte{0x10, 0, 64, 0, 0, 0x80, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0}
	sector := make([]byte, 512)
	copy(sector, code)
	copy(sector[0x40:], packet) // 64 sectors from 0000:8000 to sector 1 and on
	sector[510], sector[511] = 0x55, 0xaa
	return sector
}

const (
	// newsWithin bounds the wait for news on a busy machine; what is promised is a second.
	newsWithin = 10 * time.Second
	// roomBefore and roomAfter are the pool's size before and after it runs full.
	roomBefore, roomAfter = "size=8g", "size=4m"
)

// TestWhatAGuestDoesByItselfIsSeenAtOnce is the push of status by libvirt's events, as a
// user sees it: `burrow get` of a real guest that powers itself off, crashes, restarts and
// fills its disk.
func TestWhatAGuestDoesByItselfIsSeenAtOnce(t *testing.T) {
	s := newStack(t, "--accelerator", "tcg")
	pool := (&config.Worker{DataDir: s.data}).PoolDir()
	require.NoError(t, unix.Mount("tmpfs", pool, "tmpfs", 0, roomBefore+",mode=0711"))
	t.Cleanup(func() { require.NoError(t, unix.Unmount(pool, unix.MNT_DETACH)) })
	file := filepath.Join(s.temp, "obedient.raw")
	require.NoError(t, os.WriteFile(file, obedient(), 0o600))
	require.NoError(t, os.Truncate(file, 64<<20))
	s.run("image", "import", file, "--name", "empty")
	s.applyText(sweepNetwork)
	s.applyText(fmt.Sprintf(sweepManifest, "web", "running"))
	s.running("web")

	key := func(key string) { s.virsh("send-key", "web", key) }
	// seen does something to the guest until get shows what it leads to, and gives how long
	// the last try took. A key that comes before the boot sector runs is lost.
	seen := func(what string, do func(), shown func(manifest.Record) bool) manifest.Record {
		t.Helper()
		var rec manifest.Record
		for range 30 {
			begun := time.Now()
			do()
			for time.Since(begun) < newsWithin {
				rec = s.peek("web")
				if shown(rec) {
					t.Logf("%s: seen in `burrow get` after %s", what, time.Since(begun).Round(time.Millisecond))
					return rec
				}
				if what != "crash" && s.virshState("web") == "running" && time.Since(begun) > 2*time.Second {
					break // not heard: once more
				}
			}
		}
		require.FailNow(t, "not seen", "%s: the server is %+v", what, rec.Status)
		return rec
	}
	phase := func(want manifest.Phase) func(manifest.Record) bool {
		return func(r manifest.Record) bool { return r.Status.Phase == want && r.Status.Operation == nil }
	}
	reason := func(want string) func(manifest.Record) bool {
		return func(r manifest.Record) bool {
			return slices.ContainsFunc(r.Status.Conditions, func(c manifest.Condition) bool {
				return c.Type == manifest.ConditionAttention && c.Status && c.Reason == want
			})
		}
	}

	rec := seen("reboot", func() { key("KEY_R") }, func(r manifest.Record) bool { return r.Status.RebootedAt != nil })
	require.Equal(t, manifest.PhaseRunning, rec.Status.Phase)
	require.Contains(t, s.run("get", "servers", "-o", "wide"), rec.Status.RebootedAt.Local().Format(time.DateTime))

	rec = seen("power-off from inside", func() { key("KEY_P") }, phase(manifest.PhaseStopped))
	require.Empty(t, rec.Status.Conditions, "it ended as it should")
	s.run("start", "web")

	pid := s.guestPID("web")
	rec = seen("crash", func() { _ = unix.Kill(pid, syscall.SIGKILL) }, phase(manifest.PhaseStopped))
	require.True(t, reason("Crashed")(rec), "%+v", rec.Status)
	require.Contains(t, s.run("get", "servers"), "Stopped, NeedsAttention")
	s.run("start", "web")
	require.Empty(t, s.peek("web").Status.Conditions)

	require.NoError(t, unix.Mount("", pool, "", unix.MS_REMOUNT, roomAfter))
	rec = seen("pause on an I/O error", func() { key("KEY_W") }, reason("IOError"))
	require.Equal(t, manifest.PhaseRunning, rec.Status.Phase)
	require.Equal(t, "paused", s.virshState("web"))
	require.Contains(t, s.run("get", "servers"), "Running, NeedsAttention")
	require.Contains(t, s.run("describe", "server/web"), "burrow restart web")

	require.NoError(t, unix.Mount("", pool, "", unix.MS_REMOUNT, roomBefore))
	s.run("delete", "server/web", "-y")
}

// peek is record without a word in the log.
func (s *stack) peek(name string) (rec manifest.Record) {
	s.t.Helper()
	out, err := s.command(s.t.Context(), "get", "server", name, "-o", "json").Output()
	require.NoError(s.t, err)
	require.NoError(s.t, json.Unmarshal(out, &rec))
	return rec
}

func (s *stack) virshState(name string) string {
	s.t.Helper()
	return strings.TrimSpace(s.virsh("domstate", name))
}
