package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	ucli "github.com/urfave/cli/v2"
	"go.temporal.io/api/serviceerror"
	"golang.org/x/sync/errgroup"

	"burrow.dev/burrow/internal/config"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/internal/gateway"
	"burrow.dev/burrow/internal/installation"
	"burrow.dev/burrow/internal/supervise"
	"burrow.dev/burrow/internal/temporalclient"
)

// statusLimit bounds all questions together: they are asked side by side on loopback.
const statusLimit = 5 * time.Second

// partStatus is one line of the table.
type partStatus struct {
	Name string `json:"name"`
	PID  int    `json:"pid,omitempty"`
	// Since is when the process was started.
	Since *time.Time `json:"since,omitempty"`
	Ready bool       `json:"ready"`
	// Detail is where it is reached, or why it is not ready.
	Detail   string `json:"detail"`
	Restarts int    `json:"restarts,omitempty"`
	Log      string `json:"log,omitempty"`
}

// statusCommand shows what runs on this machine.
func statusCommand() *ucli.Command {
	return &ucli.Command{
		Name: "status", Category: categoryMachine,
		Usage: "show what burrow up runs on this machine, and whether it answers (exit code 1 if not)",
		Flags: []ucli.Flag{dataDirFlag(), outputFlag("table", "json")},
		Action: func(c *ucli.Context) error {
			dir, err := filepath.Abs(c.String("data-dir"))
			if err != nil {
				return errs.NewPermanent("data directory "+c.String("data-dir"), "open", err, "")
			}
			if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
				return errs.NewPermanent("burrow", "show status", errs.Reason("it was never started here: there is no %s", dir), "sudo burrow up --detach")
			}
			ctx, cancel := context.WithTimeout(c.Context, statusLimit)
			defer cancel()
			parts, err := statusOf(ctx, installation.Folder(dir))
			if err != nil {
				return err
			}
			if output(c) == "json" {
				err = printJSON(c.App.Writer, parts)
			} else {
				err = printStatus(c.App.Writer, parts)
			}
			if err != nil {
				return err
			}
			for _, part := range parts {
				if !part.Ready {
					return &ExitError{Code: ExitOther}
				}
			}
			return nil
		},
	}
}

// statusOf asks every part, whatever the records say.
func statusOf(ctx context.Context, folder installation.Folder) ([]partStatus, error) {
	supervisor, err := supervisorStatus(folder)
	if err != nil {
		return nil, err
	}
	states, err := supervise.States(string(folder))
	if err != nil {
		return nil, err
	}
	var client config.Client
	configured := readClient(folder, &client)
	parts := []partStatus{supervisor, {Name: installation.DevstackPart}, {Name: installation.WorkerPart}}
	ask := map[string]func() (string, error){
		installation.DevstackPart: func() (string, error) { return askDevstack(ctx, folder, client) },
		installation.WorkerPart:   func() (string, error) { return askWorker(ctx, client) },
	}
	var group errgroup.Group
	for i := 1; i < len(parts); i++ {
		part := &parts[i]
		part.Detail = "does not run"
		for _, state := range states {
			if state.Name != part.Name {
				continue
			}
			part.Log, part.Restarts = state.Log, state.Restarts
			if !state.Alive() {
				part.Detail = strings.TrimSuffix("does not run: "+state.LastExit, ": ")
				continue
			}
			part.PID, part.Since = state.PID, &state.Since
			group.Go(func() error {
				detail, err := "", configured
				if err == nil {
					detail, err = ask[part.Name]()
				}
				part.Ready, part.Detail = err == nil, detail
				if err != nil {
					part.Detail = err.Error()
				}
				return nil
			})
		}
	}
	return parts, group.Wait()
}

func supervisorStatus(folder installation.Folder) (partStatus, error) {
	holder, held, err := supervise.HolderOf(string(folder))
	if errors.Is(err, fs.ErrPermission) {
		return partStatus{Name: "up", Detail: err.Error()}, nil
	}
	if err != nil {
		return partStatus{}, err
	}
	if !held {
		return partStatus{Name: "up", Detail: "does not run: sudo burrow up --detach"}, nil
	}
	if !holder.Supervises() {
		return partStatus{Name: "up", Detail: fmt.Sprintf("does not run: %s does, as pid %d", holder.Name, holder.PID)}, nil
	}
	return partStatus{
		Name: "up", PID: holder.PID, Since: &holder.Since, Ready: true,
		Detail: "data " + string(folder), Log: filepath.Join(folder.LogDir(), "up.log"),
	}, nil
}

// readClient reads client.json of the data directory, not of --config: status is about
// this machine.
func readClient(folder installation.Folder, client *config.Client) error {
	err := installation.ReadClient(folder, client)
	if errors.Is(err, fs.ErrPermission) {
		return errs.NewOperator("burrow status", "ask", errs.Reason("%w: client.json is for group %s", fs.ErrPermission, config.Group), "use sudo, or join the group")
	}
	return err
}

// askDevstack asks Temporal for its namespace, and trusts the report for the rest,
// which ends with the process.
func askDevstack(ctx context.Context, folder installation.Folder, client config.Client) (string, error) {
	report, err := folder.ReadDevstackReport()
	if err != nil {
		return "", err
	}
	c, err := temporalclient.Dial(ctx, client.Temporal, slog.New(slog.DiscardHandler))
	if err != nil {
		return "", err
	}
	defer c.Close()
	var absent *serviceerror.NotFound // only the owner of the history shard can say so
	if _, err := c.DescribeWorkflow(ctx, "burrow-status", ""); err != nil && !errors.As(err, &absent) {
		return "", fmt.Errorf("burrow-devstack: Temporal at %s: %w", report.TemporalAddress, err)
	}
	return fmt.Sprintf("Temporal %s, etcd %s, Web UI %s", report.TemporalAddress, report.EtcdEndpoint, report.WebUI), nil
}

// askWorker asks the gateway who is there.
func askWorker(ctx context.Context, client config.Client) (string, error) {
	g, err := gateway.Dial(ctx, client.Gateway)
	if err != nil {
		return "", err
	}
	defer g.Close()
	info := g.Info()
	detail := fmt.Sprintf("gateway %s, host %s, roles %s", client.Gateway.Socket, info.Host, strings.Join(info.Roles, ","))
	if info.Accelerator != "" {
		detail += ", accelerator " + info.Accelerator
	}
	return detail, nil
}

func printStatus(w io.Writer, parts []partStatus) error {
	table := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	fmt.Fprintln(table, "PART\tPID\tSINCE\tREADY\tDETAIL")
	for _, part := range parts {
		pid, since, ready := "-", "-", "no"
		if part.PID != 0 {
			pid = fmt.Sprint(part.PID)
		}
		if part.Since != nil {
			since = part.Since.Local().Format(time.DateTime)
		}
		if part.Ready {
			ready = "yes"
		}
		detail := part.Detail
		if part.Restarts > 0 {
			detail += " (started again " + times(part.Restarts) + ")"
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", part.Name, pid, since, ready, detail)
	}
	return table.Flush()
}

// times counts in words: once, 2 times.
func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}
