package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	ucli "github.com/urfave/cli/v2"

	"burrow.dev/burrow/internal/backup"
	"burrow.dev/burrow/internal/blob"
	"burrow.dev/burrow/internal/buildinfo"
	"burrow.dev/burrow/internal/config"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/internal/etcdstate"
	"burrow.dev/burrow/internal/installation"
	"burrow.dev/burrow/internal/supervise"
)

// backupCommand writes an installation into one file.
func backupCommand() *ucli.Command {
	return &ucli.Command{
		Name: "backup", Category: categoryMachine, ArgsUsage: "FILE",
		Usage: "write records, addresses, secrets (encrypted), playbooks, logs and histories into one file",
		Description: "Everything goes on meanwhile. FILE appears when it is whole; - is standard output.\n" +
			"Not in it: the master key, the disks of servers and volumes, images. See docs/backup.md.",
		Flags: []ucli.Flag{
			&ucli.BoolFlag{Name: "force", Usage: "replace a file that is there"},
			&ucli.BoolFlag{Name: "without-history", Usage: "leave Temporal's histories out"},
			dataDirFlag(), workerConfigFlag(), devstackFlag(),
		},
		Action: func(c *ucli.Context) error {
			if c.NArg() != 1 || c.Args().First() == "" {
				return usageErrorf(c, "name the file to write, or - for standard output")
			}
			return runBackup(c, c.Args().First())
		},
	}
}

const workerConfigName = "worker-config"

func workerConfigFlag() ucli.Flag {
	return &ucli.StringFlag{Name: workerConfigName, TakesFile: true, Usage: "`FILE`: the worker.json of an installation on several machines"}
}

func devstackFlag() ucli.Flag {
	return &ucli.StringFlag{Name: "devstack", Usage: "`PATH` of burrow-devstack (default: beside burrow, else in PATH)", TakesFile: true}
}

// site is an installation whose stores are used directly, by whoever may read its worker.json.
type site struct {
	config config.Worker
	// folder of `burrow up`; "" for an installation on several machines.
	folder installation.Folder
}

// openSite reads the configuration that the flags name.
func openSite(c *ucli.Context) (site, error) {
	if path := c.String(workerConfigName); path != "" {
		cfg, err := readWorkerConfig(path)
		return site{config: cfg}, explainAccess(err)
	}
	dir, err := filepath.Abs(c.String("data-dir"))
	if err != nil {
		return site{}, errs.NewPermanent("data directory "+c.String("data-dir"), "open", err, "")
	}
	folder := installation.Folder(dir)
	if !folder.Configured() && os.Geteuid() == 0 {
		return site{}, errs.NewPermanent(folder.WorkerFile(), "read", errs.ErrNotFound,
			"name another folder with --data-dir, or the worker.json of an installation on several machines with --"+workerConfigName)
	}
	cfg, err := readWorkerConfig(folder.WorkerFile())
	return site{config: cfg, folder: folder}, explainAccess(err)
}

// explainAccess says who may make backups.
func explainAccess(err error) error {
	if errors.Is(err, os.ErrPermission) {
		return errs.NewOperator("backup", "read where the stores are", errs.Reason("%w: a backup holds everything, so only root makes and restores one", err), "sudo burrow …")
	}
	return err
}

func runBackup(c *ucli.Context, path string) error {
	if path == "-" && stdoutIsTerminal(c) {
		return usageErrorf(c, "it is no text: name a file, or send standard output somewhere")
	}
	s, err := openSite(c)
	if err != nil {
		return err
	}
	header, err := s.header(c)
	if err != nil {
		return err
	}
	if err := s.runs(); err != nil {
		return err
	}
	store, err := etcdstate.Open(s.config.Etcd, etcdstate.Options{})
	if err != nil {
		return err
	}
	defer store.Close()
	if err := store.Interrupted(c.Context); err != nil {
		return err
	}
	blobs, err := blob.Open(c.Context, s.config.Blobs)
	if err != nil {
		return err
	}
	defer blobs.Close()
	var end backup.End
	write := func(w io.Writer) error {
		history, done, err := s.snapshot(c)
		if err != nil {
			return err
		}
		defer done()
		end, err = backup.Create(c.Context, w, header, store, blobs, history)
		return err
	}
	if path == "-" {
		err = write(c.App.Writer)
	} else {
		err = backup.WriteFile(c.Context, path, c.Bool("force"), write)
	}
	if err != nil {
		return err
	}
	s.tell(c, path, header, end)
	return nil
}

// header says what the backup is of.
func (s site) header(c *ucli.Context) (backup.Header, error) {
	h := backup.Header{
		Burrow: buildinfo.Version(), Made: time.Now().UTC(), Prefix: s.config.Etcd.Prefix,
		Embedded: s.folder != "", Host: s.config.Host, Keys: s.config.Keys,
	}
	if s.folder == "" {
		return h, nil
	}
	ports, err := s.folder.LastPorts()
	h.Ports = backup.HeaderPorts{Temporal: ports.Temporal, WebUI: ports.WebUI, Etcd: ports.Etcd}
	return h, err
}

// snapshot copies Temporal's database, where there is one of ours. It comes first: see
// docs/adr/0006-backup-order.md.
func (s site) snapshot(c *ucli.Context) (history *backup.History, done func(), err error) {
	if s.folder == "" || c.Bool("without-history") {
		return nil, func() {}, nil
	}
	program, err := s.devstack(c)
	if err != nil {
		return nil, nil, err
	}
	taken, err := s.folder.SnapshotHistory(c.Context, program)
	if err != nil {
		return nil, nil, err
	}
	return &backup.History{Database: taken, DatabaseSize: taken.Size, Schema: taken.Schema}, func() { _ = taken.Close() }, nil
}

// runs refuses an installation of this machine that is down: its etcd is.
func (s site) runs() error {
	if s.folder == "" {
		return nil
	}
	_, runs, err := s.runningDevstack()
	if err != nil {
		return err
	}
	if !runs {
		return errs.NewOperator("backup", "read records", errs.Reason("%w: burrow is down", errs.ErrUnavailable), "sudo burrow up --detach")
	}
	return nil
}

// devstack finds the program that runs here, else the one that the flags name.
func (s site) devstack(c *ucli.Context) (string, error) {
	path, runs, err := s.runningDevstack()
	if err != nil {
		return "", err
	}
	if runs && !c.IsSet("devstack") {
		return path, nil
	}
	return findDevstack(c)
}

// runningDevstack gives the program of the devstack of this installation, if one runs.
func (s site) runningDevstack() (path string, runs bool, err error) {
	states, err := supervise.States(string(s.folder))
	if err != nil {
		return "", false, err
	}
	for _, state := range states {
		if state.Name == installation.DevstackPart && state.Alive() {
			return state.Path, true, nil
		}
	}
	return "", false, nil
}

func findDevstack(c *ucli.Context) (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("burrow: find this program: %w", err)
	}
	return installation.FindDevstack(c.String("devstack"), self)
}

// tell says what is in the file, and what is not.
func (s site) tell(c *ucli.Context, path string, header backup.Header, end backup.End) {
	w := c.App.Writer
	if path == "-" {
		w = c.App.ErrWriter
	}
	fmt.Fprintf(w, "%s: %s\n", path, contentsOf(end))
	for _, key := range end.Missing {
		fmt.Fprintf(w, "  warning: %s is missing: a record names it, and it is not in the blob store\n", key)
	}
	if !end.History {
		why := "--without-history"
		if !header.Embedded {
			why = "back Temporal's PostgreSQL up with its own tools, just before this"
		}
		fmt.Fprintf(w, "  no histories in it: %s\n", why)
	}
	fmt.Fprintf(w, "  not in it: disks of servers and volumes, images\n")
	fmt.Fprintf(w, "  not in it: the master key (%s). Keep a copy of it apart from this file:\n", masterKeyPlace(s.config))
	fmt.Fprintf(w, "  without it nobody can read the secrets, with both everybody can\n")
}

// contentsOf counts what a backup holds.
func contentsOf(end backup.End) string {
	parts := []string{
		fmt.Sprintf("%d records (%d keys) as of etcd's revision %d", end.Records, end.Keys, end.Revision),
		fmt.Sprintf("%d secrets", end.Secrets), fmt.Sprintf("%d playbooks and logs", end.Blobs),
	}
	if end.History {
		parts = append(parts, "Temporal's histories")
	}
	return strings.Join(parts, ", ")
}
