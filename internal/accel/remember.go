package accel

import (
	"context"
	"encoding/json"
	"os"
	"strings"
	"syscall"
)

// bootIDFile changes with every boot of the machine.
const bootIDFile = "/proc/sys/kernel/random/boot_id"

// remembered is a Result and the boot it was found in.
type remembered struct {
	Boot string `json:"boot"`
	Result
}

// DetectOnce is Detect once a boot: the result is kept in file, and found there by a
// worker that starts again. A result that was forced is not kept. A file that cannot be
// read or written only costs the test again.
func DetectOnce(ctx context.Context, forced, file string) Result {
	boot, err := os.ReadFile(bootIDFile)
	if forced != "" || err != nil {
		return Detect(ctx, forced)
	}
	// `burrow up` tests while Temporal starts; the worker that it starts then waits for it.
	lock, err := os.OpenFile(file+".lock", os.O_CREATE|os.O_RDWR|syscall.O_CLOEXEC, 0o600)
	if err != nil {
		return Detect(ctx, forced)
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return Detect(ctx, forced)
	}
	id := strings.TrimSpace(string(boot))
	var r remembered
	if b, err := os.ReadFile(file); err == nil && json.Unmarshal(b, &r) == nil && r.Boot == id && r.Accelerator != "" {
		return r.Result
	}
	r = remembered{id, Detect(ctx, "")}
	if b, err := json.Marshal(r); err == nil && ctx.Err() == nil {
		_ = os.WriteFile(file, b, 0o600)
	}
	return r.Result
}
