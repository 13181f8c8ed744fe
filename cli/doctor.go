package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"slices"

	ucli "github.com/urfave/cli/v2"

	"burrow.dev/burrow/cli/render"
	"burrow.dev/burrow/internal/config"
	"burrow.dev/burrow/internal/gateway"
)

// verdictLevel is how a check ended.
type verdictLevel string

// What a check can find: Warn works with less, Fail does not work.
const (
	checkOK   verdictLevel = "ok"
	checkWarn verdictLevel = "warn"
	checkFail verdictLevel = "fail"
)

// check is one line of the doctor.
type check struct {
	Name   string       `json:"name"`
	Level  verdictLevel `json:"level"`
	Detail string       `json:"detail,omitempty"`
	// Next is what mends it.
	Next string `json:"next,omitempty"`
}

// doctorCommand looks whether everything burrow needs is there.
func doctorCommand() *ucli.Command {
	return &ucli.Command{
		Name: "doctor", Category: categoryMachine, Usage: "check what burrow needs, and say how to mend what is missing",
		Description: "Changes nothing. Exit codes: 0 nothing fails (there may be warnings), 1 something does.",
		Flags:       []ucli.Flag{outputFlag("table", "json")},
		Action:      doctor,
	}
}

func doctor(c *ucli.Context) error {
	checks := checkClient(c)
	if cfg, err := loadConfig(c); err != nil || cfg.Gateway.Socket != "" {
		checks = append(checks, checkHost(c.Context, hostOf(filepath.Dir(c.String("config"))))...)
	}
	failed := slices.ContainsFunc(checks, func(k check) bool { return k.Level == checkFail })
	if output(c) == "json" {
		if err := printJSON(c.App.Writer, checks); err != nil {
			return err
		}
	} else {
		printChecks(c, checks)
	}
	if failed {
		return &ExitError{Code: ExitOther}
	}
	return nil
}

func printChecks(c *ucli.Context, checks []check) {
	width := 0
	for _, k := range checks {
		width = max(width, len(k.Name))
	}
	for _, k := range checks {
		fmt.Fprintf(c.App.Writer, "%-4s  %-*s  %s\n", k.Level, width, k.Name, render.Clean(k.Detail))
		if k.Next != "" && k.Level != checkOK {
			fmt.Fprintf(c.App.Writer, "      %-*s  → %s\n", width, "", render.Clean(k.Next))
		}
	}
}

// judged makes a check of an error: nil is ok with a detail, anything else level.
func judged(name string, level verdictLevel, err error, detail string) check {
	if err == nil {
		return check{Name: name, Level: checkOK, Detail: detail}
	}
	text, next := words(err)
	return check{Name: name, Level: level, Detail: text, Next: next}
}

// checkClient looks at what every user of the command line needs.
func checkClient(c *ucli.Context) []check {
	path := c.String("config")
	cfg, err := loadConfig(c)
	checks := []check{judged("client configuration", checkFail, err, path), checkGroup()}
	if err != nil {
		return checks
	}
	gw, err := gateway.Dial(c.Context, cfg.Gateway)
	if err != nil {
		checks = append(checks, judged("gateway", checkFail, err, ""))
	} else {
		checks = append(checks, checkGateway(gw.Info())...)
		checks = append(checks, stateStoreVerdict(gw.StateStore(c.Context))...)
		_ = gw.Close()
	}
	tc, err := openTemporal(c)
	checks = append(checks, judged("Temporal", checkFail, err, cfg.Temporal.Address+", namespace "+cfg.Temporal.Namespace))
	if err == nil {
		checks = append(checks, checkSweep(c.Context, tc))
		tc.Close()
	}
	return checks
}

func checkGateway(info gateway.Info) []check {
	up := check{Name: "gateway", Level: checkOK, Detail: fmt.Sprintf("host %s, version %s", info.Host, info.Version)}
	if info.Version != version() {
		up.Level, up.Detail = checkWarn, fmt.Sprintf("the worker on %s has version %s, this program %s", info.Host, info.Version, version())
		up.Next = "restart the worker with this version: burrow down && burrow up --detach"
	}
	accelerator := check{Name: "accelerator", Level: checkOK, Detail: info.Accelerator}
	switch {
	case info.Accelerator == "":
		return []check{up}
	case info.Accelerator != "kvm":
		accelerator.Level = checkWarn
		accelerator.Detail = fmt.Sprintf("%s: %s", info.Accelerator, info.AcceleratorReason)
		accelerator.Next = "guests run, slowly; use a machine where KVM works for speed"
	}
	return []check{up, accelerator}
}

// checkGroup looks whether this user may talk to burrow without sudo.
func checkGroup() check {
	k := check{Name: "group " + config.Group, Level: checkOK}
	if os.Geteuid() == 0 {
		k.Detail = "you are root"
		return k
	}
	join := fmt.Sprintf("sudo usermod -aG %s $USER, then log in again", config.Group)
	group, err := user.LookupGroup(config.Group)
	if err != nil {
		return check{Name: k.Name, Level: checkWarn, Detail: "there is no such group", Next: "burrow up makes it; then: " + join}
	}
	ids, err := os.Getgroups()
	if err != nil {
		return check{Name: k.Name, Level: checkWarn, Detail: err.Error()}
	}
	if !slices.Contains(ids, atoiOr(group.Gid, -1)) {
		return check{Name: k.Name, Level: checkFail, Detail: "you are not in it", Next: join}
	}
	k.Detail = "you are in it"
	return k
}

// hostOf reads where this machine's worker keeps its things; defaults where it cannot.
func hostOf(dataDir string) config.Worker {
	w := config.Worker{DataDir: dataDir}
	if content, err := os.ReadFile(filepath.Join(dataDir, config.WorkerFile)); err == nil {
		_ = json.Unmarshal(content, &w) // a broken file is reported by the worker
	}
	if w.DataDir == "" {
		w.DataDir = config.DefaultDataDir
	}
	if w.Host.CacheDir == "" {
		w.Host.CacheDir = defaultCacheDir
	}
	return w
}

// defaultCacheDir is the worker's default for downloads and built images.
const defaultCacheDir = "/var/cache/burrow"

// checkHost looks at what a hypervisor needs.
func checkHost(ctx context.Context, w config.Worker) []check {
	checks := []check{
		checkSocket(ctx, "libvirt", "start it: systemctl start libvirtd (without systemd: libvirtd -d && virtlogd -d)", "/run/libvirt/libvirt-sock", "/run/libvirt/virtqemud-sock"),
		checkSocket(ctx, "Open vSwitch", "start it: systemctl start openvswitch-switch (without systemd: /usr/share/openvswitch/scripts/ovs-ctl start)", "/run/openvswitch/db.sock"),
		checkKVM(),
		checkForwarding(),
		checkFirewalls(ctx),
	}
	checks = append(checks, checkPrograms()...)
	return append(checks, checkSpace(w.DataDir), checkSpace(w.Host.CacheDir))
}
