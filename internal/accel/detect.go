package accel

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Accelerators.
const (
	KVM = "kvm"
	TCG = "tcg"
)

const (
	// device is where the kernel offers KVM.
	device = "/dev/kvm"
	// qemu is the emulator that libvirt starts for x86-64 guests.
	qemu = "qemu-system-x86_64"
	// firstWait is for QEMU and its firmware to reach the boot sector: 0.5 s under TCG,
	// more on a machine that is busy starting everything else, and 4 s on a KVM that
	// emulates each instruction, which is known by then.
	firstWait = 3 * time.Second
	// lastWait is for counting to 50 million: 0.05 s where KVM runs the guest's code on
	// the processor, minutes where it emulates each instruction.
	lastWait = time.Second
)

// Result says what guests will run on, and why.
type Result struct {
	Accelerator string // KVM or TCG
	Reason      string // one clause, for people
}

// Detect boots the boot sector under KVM and gives KVM only when it ran at speed.
// forced ("kvm" or "tcg", from the configuration) is obeyed without a test.
func Detect(ctx context.Context, forced string) Result {
	switch forced {
	case KVM, TCG:
		return Result{forced, "set in the configuration"}
	}
	f, err := os.OpenFile(device, os.O_RDWR, 0)
	if err != nil {
		return Result{TCG, "KVM cannot be used: " + plain(err)}
	}
	_ = f.Close()
	took, err := boot(ctx, KVM)
	if err != nil {
		return Result{TCG, "KVM is there and does not work: " + err.Error()}
	}
	return Result{KVM, fmt.Sprintf("a test guest ran on it in %d ms", took.Milliseconds())}
}

// plain leaves the path and the cause of a file's error, without Go's verb.
func plain(err error) string {
	var path *os.PathError
	if errors.As(err, &path) {
		return path.Path + ": " + path.Err.Error()
	}
	return err.Error()
}

// boot runs the boot sector under an accelerator and gives the time between its marks.
// QEMU is gone when it returns.
func boot(ctx context.Context, accelerator string) (time.Duration, error) {
	disk, err := inMemory(bootSector())
	if err != nil {
		return 0, err
	}
	defer disk.Close()
	ctx, cancel := context.WithTimeout(ctx, firstWait+lastWait)
	defer cancel()
	cmd := exec.CommandContext(ctx, qemu, arguments(accelerator)...)
	cmd.ExtraFiles = []*os.File{disk}
	var complaint strings.Builder
	cmd.Stderr = &complaint
	marks, err := cmd.StdoutPipe()
	if err != nil {
		return 0, err
	}
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	took, err := watch(marks, cancel)
	cancel()
	_ = cmd.Wait() // killed, or left by the debug port with status 1: neither says anything
	if text := complaints(complaint.String()); err != nil && text != "" {
		err = fmt.Errorf("%w: %s", err, text)
	}
	return took, err
}

// complaints are QEMU's words without its warnings, which it also gives when all is well.
func complaints(text string) string {
	var kept []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" && !strings.Contains(line, "warning:") {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "; ")
}

// inMemory is a file that has no name, and goes with its last user: nothing is left behind
// by one who is killed.
func inMemory(content []byte) (*os.File, error) {
	fd, err := unix.MemfdCreate("boot-sector", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("make a disk for a test guest: %w", err)
	}
	f := os.NewFile(uintptr(fd), "boot-sector")
	if _, err := f.Write(content); err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// arguments start QEMU with its first inherited file as the disk.
func arguments(accelerator string) []string {
	return []string{
		"-accel", accelerator, "-machine", "pc", "-m", "16", "-display", "none", "-nodefaults", "-no-user-config", "-no-reboot",
		"-drive", "if=ide,format=raw,snapshot=on,file=/proc/self/fd/3",
		"-chardev", "stdio,id=marks,signal=off", "-device", fmt.Sprintf("isa-debugcon,iobase=%#x,chardev=marks", debugPort),
		"-device", fmt.Sprintf("isa-debug-exit,iobase=%#x,iosize=1", exitPort),
	}
}

// watch reads the marks; kill ends QEMU, and with it a read that waits.
func watch(marks io.Reader, kill func()) (time.Duration, error) {
	mark := make([]byte, 1)
	if _, err := io.ReadFull(marks, mark); err != nil || mark[0] != firstMark {
		return 0, fmt.Errorf("a test guest did not start within %s", firstWait)
	}
	began := time.Now()
	limit := time.AfterFunc(lastWait, kill)
	defer limit.Stop()
	if _, err := io.ReadFull(marks, mark); err != nil || mark[0] != lastMark {
		return 0, fmt.Errorf("a test guest counted for more than %s where milliseconds are enough (every instruction is emulated)", lastWait)
	}
	return time.Since(began), nil
}
