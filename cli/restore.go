package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	ucli "github.com/urfave/cli/v2"
	"golang.org/x/sys/unix"

	"burrow.dev/burrow/internal/backup"
	"burrow.dev/burrow/internal/blob"
	"burrow.dev/burrow/internal/config"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/internal/etcdstate"
	"burrow.dev/burrow/internal/etcdstate/addresses"
	"burrow.dev/burrow/internal/installation"
	"burrow.dev/burrow/internal/supervise"
)

// restoreCommand brings back what backupCommand wrote.
func restoreCommand() *ucli.Command {
	return &ucli.Command{
		Name: "restore", Category: categoryMachine, ArgsUsage: "FILE",
		Usage: "bring back what burrow backup wrote, on a machine where burrow is down or was never up",
		Description: "The whole file is checked before anything is changed. A restore that was interrupted is run\n" +
			"again; until then no worker starts. After it: `burrow up`, then `burrow sweep`. See docs/backup.md.",
		Flags: []ucli.Flag{
			&ucli.BoolFlag{Name: "replace", Usage: "delete the records and histories that are there"},
			&ucli.BoolFlag{Name: "without-history", Usage: "leave Temporal's histories out: operations that were open end"},
			&ucli.StringFlag{Name: "master-key", TakesFile: true, Usage: "`FILE`: a copy of the master key that the secrets are encrypted under"},
			dataDirFlag(), workerConfigFlag(), devstackFlag(),
			&ucli.IntFlag{Name: "etcd-port", Usage: "`PORT` of etcd on loopback", DefaultText: portDefault(installation.DefaultEtcdPort)},
		},
		Action: func(c *ucli.Context) error {
			if c.NArg() != 1 || c.Args().First() == "" {
				return usageErrorf(c, "name the backup")
			}
			return runRestore(c, c.Args().First())
		},
	}
}

func runRestore(c *ucli.Context, path string) error {
	info, err := os.Stat(path) // opening a pipe would wait for its writer
	if err != nil {
		return errs.NewPermanent("backup "+path, "open", err, "name a file that you may read")
	}
	if !info.Mode().IsRegular() {
		return errs.NewPermanent("backup "+path, "open", errs.Reason("it is read several times, so it must be a plain file"), "copy it to a disk first")
	}
	file, err := os.Open(path)
	if err != nil {
		return errs.NewPermanent("backup "+path, "open", err, "name a file that you may read")
	}
	defer file.Close()
	r := &restoration{Context: c, file: file}
	if r.contents, err = r.verify(); err != nil {
		return err
	}
	if err := r.fits(); err != nil {
		return err
	}
	fmt.Fprintf(c.App.Writer, "%s: whole: %s, made %s\n", path, contentsOf(r.contents.End), r.contents.Header.Made.Local().Format("2006-01-02 15:04:05"))
	if c.String(workerConfigName) != "" {
		return r.onSite()
	}
	return r.onThisMachine()
}

// restoration is one run of restore.
type restoration struct {
	*ucli.Context
	file     *os.File
	contents backup.Contents
}

func (r *restoration) verify() (backup.Contents, error) {
	return backup.Verify(r.Context.Context, r.file)
}

// again gives the file from its beginning.
func (r *restoration) again() (io.Reader, error) {
	_, err := r.file.Seek(0, io.SeekStart)
	return r.file, err
}

func (r *restoration) say(format string, args ...any) {
	fmt.Fprintf(r.App.Writer, format+"\n", args...)
}

// wantsHistory says whether Temporal's database is to be restored.
func (r *restoration) wantsHistory() bool { return r.contents.History && !r.Bool("without-history") }

// fits refuses what cannot work here.
func (r *restoration) fits() error {
	here := r.String(workerConfigName) == ""
	if here && !r.contents.Header.Embedded {
		return errs.NewPermanent("backup", "restore", errs.Reason("it is of an installation on several machines"),
			"name that installation's worker.json with --"+workerConfigName)
	}
	if !here && r.wantsHistory() {
		return errs.NewPermanent("backup", "restore", errs.Reason("it has the SQLite database of a single machine's Temporal"),
			"leave it out with --without-history: an installation on several machines has PostgreSQL")
	}
	return nil
}

// onSite restores into the etcd of several machines.
func (r *restoration) onSite() error {
	s, err := openSite(r.Context)
	if err != nil {
		return err
	}
	if err := r.bringKey(s.config); err != nil {
		return err
	}
	if err := r.into(s.config, os.TempDir(), func() error { return nil }); err != nil {
		return err
	}
	r.say("restored. Next:")
	r.say("  restore Temporal's PostgreSQL from its own backup, if it is lost or is to go back too")
	r.say("  start the workers on every machine")
	r.say("  run: burrow sweep")
	return nil
}

// onThisMachine restores the installation of `burrow up`, which does not run.
func (r *restoration) onThisMachine() error {
	if os.Geteuid() != 0 {
		return errs.NewOperator("burrow restore", "start", errs.Reason("it writes everything that burrow has, which takes root"), "sudo burrow restore")
	}
	devstack, err := findDevstack(r.Context)
	if err != nil {
		return err
	}
	dir, err := filepath.Abs(r.String("data-dir"))
	if err != nil {
		return errs.NewPermanent("data directory "+r.String("data-dir"), "open", err, "")
	}
	// Before anything is made: with the wrong key there is nothing to do here.
	keys, err := keyConfig(installation.Folder(dir))
	if err != nil {
		return err
	}
	if err := r.checkKey(keys); err != nil {
		return err
	}
	folder, err := installation.OpenFolder(dir)
	if err != nil {
		return err
	}
	supervisor := &supervise.Supervisor{Dir: string(folder), Name: "burrow restore"}
	if err := supervisor.Acquire(); err != nil {
		return err
	}
	err = r.intoFolder(folder, devstack)
	return errors.Join(err, supervisor.Close())
}

// keyConfig says where the master keys of a data directory are, also of one that is not
// there yet.
func keyConfig(folder installation.Folder) (config.Worker, error) {
	if folder.Configured() {
		if cfg, err := readWorkerConfig(folder.WorkerFile()); err != nil || len(cfg.MasterKeyCommand) > 0 {
			return cfg, err
		}
	}
	return config.Worker{MasterKeyFile: folder.MasterKey()}, nil
}

// intoFolder prepares the installation as `burrow up` does, and restores into it.
func (r *restoration) intoFolder(folder installation.Folder, devstack string) (err error) {
	if err := folder.NothingRuns(); err != nil {
		return err
	}
	if err := r.room(folder); err != nil {
		return err
	}
	conf, err := r.configure(folder)
	if err != nil {
		return err
	}
	if err := r.stage(folder, devstack); err != nil {
		return err
	}
	etcd, err := conf.StartEtcd(r.Context.Context, devstack)
	if err != nil {
		return errors.Join(err, folder.UnstageHistory())
	}
	err = r.intoRunning(conf)
	if err = errors.Join(err, etcd.Stop(), folder.UnstageHistory()); err != nil {
		return err
	}
	r.say("restored. Next:")
	up := "sudo burrow up --detach"
	if r.IsSet("data-dir") {
		up += " --data-dir " + string(folder)
	}
	r.say("  %s", up)
	if !r.wantsHistory() {
		r.say("  operations that were open are not known to Temporal any more")
	}
	r.say("  run: burrow sweep")
	return nil
}

// configure writes the configuration, on a new machine with what the backup says of the old one.
func (r *restoration) configure(folder installation.Folder) (*installation.Configuration, error) {
	h := r.contents.Header
	settings := installation.Settings{Ports: installation.Ports{Etcd: r.Int("etcd-port")}}
	if !folder.Configured() {
		settings.Ports.Temporal, settings.Ports.WebUI = h.Ports.Temporal, h.Ports.WebUI
		if settings.Ports.Etcd == 0 {
			settings.Ports.Etcd = h.Ports.Etcd
		}
		if err := folder.Adopt(h.Prefix, h.Host, h.Keys); err != nil {
			return nil, err
		}
	}
	keys, err := keyConfig(folder)
	if err != nil {
		return nil, err
	}
	if err := r.bringKey(keys); err != nil {
		return nil, err
	}
	conf, err := installation.Configure(r.Context.Context, folder, settings, installation.SystemAccounts{})
	if err != nil {
		return nil, err
	}
	for _, sentence := range conf.Said {
		r.say("  %s", sentence)
	}
	if conf.Worker.Host.Name != h.Host.Name {
		r.say("  warning: this host is %s, the backup is of %s: its servers stay that host's", conf.Worker.Host.Name, h.Host.Name)
	}
	return conf, nil
}

// etcdLog is what etcd takes at once for its write-ahead log.
const etcdLog = 64_000_000

// room refuses a disk that the backup does not fit on.
func (r *restoration) room(folder installation.Folder) error {
	var disk unix.Statfs_t
	if err := unix.Statfs(string(folder), &disk); err != nil {
		return errs.NewOperator("data directory "+string(folder), "measure", err, "")
	}
	need := r.contents.Bytes + etcdLog
	if free := int64(disk.Bavail) * disk.Bsize; free < need {
		return errs.NewOperator("data directory "+string(folder), "restore", errs.Reason("%w: %d MiB are free, %d are needed", errs.ErrNoSpace, free>>20, need>>20+1),
			"make room; nothing was changed")
	}
	return nil
}

// stage puts Temporal's database beside the one that is there.
func (r *restoration) stage(folder installation.Folder, devstack string) error {
	if !r.wantsHistory() {
		return nil
	}
	file, err := r.again()
	if err != nil {
		return err
	}
	return backup.ExtractHistory(r.Context.Context, file, func(schema []byte, database io.Reader) error {
		return folder.StageHistory(r.Context.Context, devstack, schema, database)
	})
}

// intoRunning restores while etcd runs for this process.
func (r *restoration) intoRunning(conf *installation.Configuration) error {
	if conf.Folder.HasHistory() && !r.Bool("replace") {
		if err := r.histories(conf); err != nil {
			return err
		}
	}
	return r.into(conf.Worker, string(conf.Folder), func() error { return conf.Folder.ReplaceHistory(r.wantsHistory()) })
}

// histories refuses to replace those that are there, unless a restore was interrupted.
func (r *restoration) histories(conf *installation.Configuration) error {
	store, err := etcdstate.Open(conf.Worker.Etcd, etcdstate.Options{})
	if err != nil {
		return err
	}
	defer store.Close()
	if err := store.Interrupted(r.Context.Context); errors.Is(err, errs.ErrBusy) {
		return nil
	} else if err != nil {
		return err
	}
	return errs.NewPermanent("data directory "+string(conf.Folder), "restore", errs.Reason("%w: burrow was up here", errs.ErrExists),
		"make a backup first if you need it; then restore with --replace")
}

// into takes the world for this restore, and gives it free when all is there. histories
// replaces Temporal's, while nobody can use either.
func (r *restoration) into(cfg config.Worker, tempDir string, histories func() error) error {
	ctx := r.Context.Context
	store, err := etcdstate.Open(cfg.Etcd, etcdstate.Options{})
	if err != nil {
		return err
	}
	defer store.Close()
	blobs, err := blob.Open(ctx, cfg.Blobs)
	if err != nil {
		return err
	}
	defer blobs.Close()
	world, err := store.BeginRestore(ctx, r.Bool("replace"), addresses.DefaultQuarantine)
	if err != nil {
		return err
	}
	file, err := r.again()
	if err == nil {
		err = histories()
	}
	if err == nil {
		err = backup.Restore(ctx, file, r.contents, backup.World{Records: world, Blobs: blobs, TempDir: tempDir})
	}
	return r.interrupted(err)
}

// interrupted says what state a failure has left.
func (r *restoration) interrupted(err error) error {
	if err == nil {
		return nil
	}
	what := "the restore was interrupted; no worker starts until it is run again"
	if errors.Is(err, context.Canceled) {
		fmt.Fprintln(r.App.ErrWriter, what)
		return err
	}
	return errs.NewOperator("restore", "finish", fmt.Errorf("%w\n%s", err, what), "run it again: burrow restore FILE")
}
