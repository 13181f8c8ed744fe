package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	ucli "github.com/urfave/cli/v2"
	"golang.org/x/sync/errgroup"

	"burrow.dev/burrow/internal/accel"
	"burrow.dev/burrow/internal/config"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/internal/installation"
	"burrow.dev/burrow/internal/supervise"
)

// certificateCheck is how often a running installation looks whether certificates near
// their end; they are renewed months before it.
const certificateCheck = 24 * time.Hour

// upCommand starts everything on one machine.
func upCommand() *ucli.Command {
	return &ucli.Command{
		Name: "up", Category: categoryMachine,
		Usage:       "start everything on this machine, and keep it running",
		Description: "Starts Temporal, its Web UI and etcd (burrow-devstack) and the worker, restarts what dies,\nand stops them in order when it is stopped. What an earlier, killed `burrow up` left is adopted.",
		Flags: []ucli.Flag{
			&ucli.BoolFlag{Name: "detach", Aliases: []string{"d"}, Usage: "return when everything is ready; burrow goes on in the background"},
			dataDirFlag(),
			&ucli.IntFlag{Name: "temporal-port", Usage: "`PORT` of Temporal on loopback", DefaultText: portDefault(installation.DefaultTemporalPort)},
			&ucli.IntFlag{Name: "ui-port", Usage: "`PORT` of the Web UI on loopback", DefaultText: portDefault(installation.DefaultWebUIPort)},
			&ucli.IntFlag{Name: "etcd-port", Usage: "`PORT` of etcd on loopback", DefaultText: portDefault(installation.DefaultEtcdPort)},
			&ucli.StringFlag{Name: "host-name", Usage: "`NAME` of this hypervisor (default: the machine's host name)"},
			&ucli.StringFlag{Name: "accelerator", Usage: "`NAME`: auto tests KVM by booting, kvm and tcg force one (default: that of last time, else auto)"},
			&ucli.StringFlag{Name: "keys-ca", Usage: "`FILE` of authorities trusted for login key servers besides the system's", TakesFile: true},
			&ucli.BoolFlag{Name: "keys-allow-private", Usage: "accept login key servers at private and loopback addresses"},
			&ucli.StringFlag{Name: "devstack", Usage: "`PATH` of burrow-devstack (default: beside burrow, else in PATH)", TakesFile: true},
			&ucli.IntFlag{Name: announceFlag, Hidden: true},
		},
		Action: func(c *ucli.Context) error {
			if os.Geteuid() != 0 {
				return errs.NewOperator("burrow up", "start", errs.Reason("it drives libvirt and Open vSwitch, which takes root"), "sudo burrow up")
			}
			folder, err := installation.OpenFolder(c.String("data-dir"))
			if err != nil {
				return err
			}
			if c.Bool("detach") {
				return detach(c, folder)
			}
			ctx, stop := signal.NotifyContext(c.Context, syscall.SIGHUP) // a closed terminal is an orderly stop, too
			defer stop()
			c.Context = ctx
			return runUp(c, folder)
		},
	}
}

func portDefault(port int) string { return fmt.Sprintf("that of last time, else %d", port) }

func dataDirFlag() ucli.Flag {
	return &ucli.StringFlag{Name: "data-dir", Value: config.DefaultDataDir, EnvVars: []string{"BURROW_DATA_DIR"}, Usage: "`DIR` that holds everything", TakesFile: true}
}

// runUp is the supervisor: it returns when it was asked to stop, or cannot start.
func runUp(c *ucli.Context, folder installation.Folder) error {
	began := time.Now()
	say, ready, failed := announcer(c)
	log, closeLog, err := upLog(folder)
	if err != nil {
		return failed(err)
	}
	defer closeLog()
	s := &supervise.Supervisor{Dir: string(folder), Log: log, Progress: func(e supervise.Event) { say(e.Part + ": " + e.Text) }}
	if err := s.Acquire(); err != nil {
		return failed(err)
	}
	err = folder.AwaitEtcd(c.Context)
	if err == nil {
		err = folder.UnstageHistory() // of a restore that was killed
	}
	if err != nil {
		return failed(errors.Join(err, s.Close()))
	}
	conf, gid, err := configure(c, folder, s)
	if err == nil {
		for _, sentence := range conf.Said {
			say(sentence)
			log.Info(sentence)
		}
		err = superviseUntilStopped(c.Context, s, conf, gid, log, func() {
			say(summary(conf, time.Since(began)))
			ready()
			if err := notifyReady(); err != nil {
				log.Error("tell the service manager", "error", err)
			}
		})
	}
	if err = errors.Join(err, s.Close()); err != nil && c.Context.Err() == nil {
		log.Error("burrow up ended", "error", err)
		return failed(err)
	}
	return err
}

// configure writes the configuration and gives the supervisor its parts.
func configure(c *ucli.Context, folder installation.Folder, s *supervise.Supervisor) (*installation.Configuration, int, error) {
	settings, err := settingsOf(c)
	if err != nil {
		return nil, 0, err
	}
	conf, err := installation.Configure(c.Context, folder, settings, installation.SystemAccounts{})
	if err != nil {
		return nil, 0, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, 0, fmt.Errorf("burrow up: find this program: %w", err)
	}
	devstack, err := installation.FindDevstack(c.String("devstack"), self)
	if err != nil {
		return nil, 0, err
	}
	s.Parts, err = conf.Parts(self, devstack)
	if err != nil {
		return nil, 0, err
	}
	gid, _, err := installation.SystemAccounts{}.EnsureGroup(c.Context, config.Group)
	return conf, gid, err
}

// settingsOf reads the flags that end up in the configuration.
func settingsOf(c *ucli.Context) (installation.Settings, error) {
	settings := installation.Settings{
		Ports:       installation.Ports{Temporal: c.Int("temporal-port"), WebUI: c.Int("ui-port"), Etcd: c.Int("etcd-port")},
		HostName:    c.String("host-name"),
		Accelerator: c.String("accelerator"),
	}
	if c.IsSet("keys-allow-private") {
		allow := c.Bool("keys-allow-private")
		settings.KeysAllowPrivate = &allow
	}
	if c.IsSet("keys-ca") {
		path, err := filepath.Abs(c.String("keys-ca"))
		if err != nil {
			return settings, errs.NewPermanent("certificate authorities "+c.String("keys-ca"), "find", err, "")
		}
		settings.KeysCA = path
	}
	return settings, nil
}

// superviseUntilStopped runs the parts, and beside them renews certificates.
func superviseUntilStopped(ctx context.Context, s *supervise.Supervisor, conf *installation.Configuration, gid int, log *slog.Logger, ready func()) error {
	ctx, cancel := context.WithCancel(ctx)
	var group errgroup.Group
	group.Go(func() error {
		defer cancel()
		return s.Run(ctx, ready)
	})
	group.Go(func() error {
		// The worker needs to know when it starts; testing beside Temporal's start saves the wait.
		accel.DetectOnce(ctx, conf.Worker.Host.Accelerator, conf.Worker.AcceleratorFile())
		return nil
	})
	group.Go(func() error {
		ticker := time.NewTicker(certificateCheck)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return nil
			case <-ticker.C:
			}
			renewed, err := conf.RenewCertificates(gid)
			if err != nil {
				log.Error("renew certificates", "renewed", renewed, "error", err)
				continue
			}
			log.Info("looked at certificates", "renewed", renewed)
		}
	})
	return group.Wait()
}

// upLog is the supervisor's own log.
func upLog(folder installation.Folder) (*slog.Logger, func(), error) {
	path := filepath.Join(folder.LogDir(), "up.log")
	if err := os.MkdirAll(folder.LogDir(), 0o755); err != nil {
		return nil, nil, errs.NewOperator(path, "make its folder", err, "run as root")
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o640)
	if err != nil {
		return nil, nil, errs.NewOperator(path, "open", err, "run as root")
	}
	return slog.New(slog.NewTextHandler(file, nil)), func() { _ = file.Close() }, nil
}

// summary is what somebody who has just started burrow wants to know.
func summary(conf *installation.Configuration, took time.Duration) string {
	return strings.Join([]string{
		fmt.Sprintf("burrow is up (%.1f s)", took.Seconds()),
		"  Web UI    " + conf.Client.WebUI + "  (read-only)",
		"  Temporal  " + conf.Client.Temporal.Address,
		"  gateway   " + conf.Client.Gateway.Socket,
		"  data      " + string(conf.Folder),
		"  logs      " + conf.Folder.LogDir(),
	}, "\n")
}
