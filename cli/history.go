package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	ucli "github.com/urfave/cli/v2"

	"burrow.dev/burrow/cli/follow"
	"burrow.dev/burrow/cli/render"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/manifest"
)

// historyTimeout bounds reading many histories from Temporal.
const historyTimeout = 2 * time.Minute

// playbookStep is how people name the step that runs playbooks.
const playbookStep = "playbook"

// historyCommand lists what was done to a resource.
func historyCommand() *ucli.Command {
	return &ucli.Command{
		Name: "history", Category: categoryOperations, Usage: "list the operations of a resource: when, who, what, and how each ended", ArgsUsage: "KIND NAME | KIND/NAME",
		Description: "The latest is first; what is open or held is there too, also when the resource is deleted.\n" +
			"  burrow history server db --step playbook     each playbook run, with its log's ID and its recap\n" +
			"Temporal keeps an operation for 90 days after its end (with a Temporal of your own, what its namespace\n" +
			"says); the logs of playbook runs stay.",
		Flags: []ucli.Flag{
			&ucli.StringFlag{Name: "step", Usage: "list this `STEP` of each operation: playbook, or any that burrow watch shows"},
			&ucli.IntFlag{Name: "limit", Value: 20, Usage: "at most `N` operations; 0 is all"},
			outputFlag("table", "json"),
		},
		Action: showHistory,
	}
}

// historyDocument is the history as JSON.
type historyDocument struct {
	APIVersion string        `json:"apiVersion"`
	Kind       string        `json:"kind"`
	Resource   string        `json:"resource"`
	Items      []follow.Past `json:"items"`
}

func showHistory(c *ucli.Context) error {
	refs, err := resourceArgs(c, 1)
	if err != nil {
		return err
	}
	if c.Int("limit") < 0 {
		return usageErrorf(c, "--limit is 0 or more")
	}
	cfg, err := loadConfig(c)
	if err != nil {
		return err
	}
	tc, err := openTemporal(c)
	if err != nil {
		return err
	}
	defer tc.Close()
	ref := refs[0].String()
	ctx, cancel := context.WithTimeout(c.Context, historyTimeout)
	defer cancel()
	past, err := follow.Operations(ctx, tc, cfg.Temporal.Namespace, ref, c.Int("limit"))
	if err != nil {
		return errs.NewTransient(ref, "read its history", err)
	}
	if len(past) == 0 {
		return errs.NewPermanent(ref, "read its history", errs.Reason("%w: Temporal has no operation of it", errs.ErrNotFound),
			"`burrow get "+refs[0].Kind.Word()+"` lists what there is; operations are kept for 90 days")
	}
	if refs[0].Kind == manifest.KindServer {
		nameRuns(past, storedRuns(c, refs[0].Name))
	}
	step := c.String("step")
	if output(c) == "json" {
		return printJSON(c.App.Writer, historyDocument{manifest.APIVersion, "History", ref, onlyStep(past, step)})
	}
	header, rows := historyTable(onlyStep(past, step), step, time.Now())
	if len(rows) == 0 {
		return writeLine(c, "no operation has come to the step "+step)
	}
	return render.Table(c.App.Writer, header, rows)
}

// storedRuns are the playbook runs of a server that have a log. A server that is deleted
// has no list, nor has a gateway that is down; the history is worth showing without.
func storedRuns(c *ucli.Context, name string) []string {
	gw, err := openGateway(c)
	if err != nil {
		return nil
	}
	defer gw.Close()
	runs, _ := gw.ListRuns(c.Context, name)
	return runs
}

// nameRuns gives runs whose id Temporal was not told (cancelled, or going on) that of the
// latest log begun meanwhile: ids begin with the time.
func nameRuns(past []follow.Past, stored []string) {
	for i := range past {
		for j := range past[i].Playbooks {
			r := &past[i].Playbooks[j]
			for _, id := range stored {
				at, err := time.Parse("20060102-150405", id[:min(len(id), len("20060102-150405"))])
				if r.RunID == "" && err == nil && !at.Before(r.Started.Truncate(time.Second)) && (r.Ended.IsZero() || !at.After(r.Ended)) {
					r.RunID = id
				}
			}
		}
	}
}

func writeLine(c *ucli.Context, text string) error {
	_, err := fmt.Fprintln(c.App.ErrWriter, text)
	return err
}

// onlyStep leaves the operations that came to a step, with that step alone; "" leaves all.
func onlyStep(past []follow.Past, step string) []follow.Past {
	if step == "" {
		return past
	}
	kept := []follow.Past{}
	for _, p := range past {
		var steps []render.Step
		for _, s := range p.Steps {
			if s.Name == stepNamed(step) && !s.Started.IsZero() {
				steps = append(steps, s)
			}
		}
		p.Steps = steps
		if stepNamed(step) != stepNamed(playbookStep) {
			p.Playbooks = []follow.PlaybookRun{}
		}
		if len(steps)+len(p.Playbooks) > 0 {
			kept = append(kept, p)
		}
	}
	return kept
}

func stepNamed(step string) string {
	if step == playbookStep {
		return "run playbook"
	}
	return step
}

// folderOf names what a run was of: its bundle, the commit that it was fetched at, and its requirements file.
func folderOf(r follow.PlaybookRun) string {
	text := shortDigest(r.Bundle)
	if r.Source != nil && r.Source.Commit != "" {
		text += " commit " + r.Source.Commit[:min(shortCommit, len(r.Source.Commit))]
	}
	if r.Requirements != "" {
		text += " requirements " + shortDigest(r.Requirements)
	}
	return text
}

// shortCommit is how much of a commit's id tells it from others, to people.
const shortCommit = 12

func historyTable(past []follow.Past, step string, now time.Time) (header []string, rows [][]string) {
	switch {
	case step == "":
		header = []string{"STARTED", "OPERATION", "BY", "TOOK", "ENDED", "MESSAGE"}
		for _, p := range past {
			rows = append(rows, []string{when(p.Started), operationOf(p), p.RequestedBy, took(p.Started, p.Ended, now), endOf(p.State), oneLine(p.Message)})
		}
	case stepNamed(step) == stepNamed(playbookStep):
		header = []string{"STARTED", "OPERATION", "BY", "PLAYBOOK", "BUNDLE", "TOOK", "ENDED", "RECAP", "RUN", "MESSAGE"}
		for _, p := range past {
			for i := range p.Playbooks { // latest first, as the operations are
				r := p.Playbooks[len(p.Playbooks)-1-i]
				rows = append(rows, []string{
					when(r.Started), operationOf(p), p.RequestedBy, strings.Join(r.Playbook, ","), folderOf(r), took(r.Started, r.Ended, now),
					endOf(r.State) + attempts(r.Attempts), recapOf(r.Recap), r.RunID, oneLine(r.Message),
				})
			}
		}
	default:
		header = []string{"STARTED", "OPERATION", "BY", "STEP", "TOOK", "ENDED", "MESSAGE"}
		for _, p := range past {
			for _, s := range p.Steps {
				rows = append(rows, []string{when(s.Started), operationOf(p), p.RequestedBy, s.Name, took(s.Started, s.Ended, now), endOf(s.State), oneLine(s.LastError)})
			}
		}
	}
	return header, rows
}

func when(at time.Time) string { return at.Local().Format(time.DateTime) }

// took is how long something went on; what is open goes on until now.
func took(from, to, now time.Time) string {
	if to.IsZero() {
		to = now
	}
	return to.Sub(from).Round(time.Second).String()
}

// endOf says how something ended in a person's word.
func endOf(s render.State) string {
	switch s {
	case render.Running, render.Retrying, render.Undoing:
		return "still " + string(s)
	}
	return string(s)
}

// operationOf names an operation, and says when it only looked.
func operationOf(p follow.Past) string {
	if p.Check {
		return p.Operation + " --check"
	}
	return p.Operation
}

func attempts(n int) string {
	if n < 2 {
		return ""
	}
	return fmt.Sprintf(" (attempt %d)", n)
}

// shortDigest is enough of a digest to tell bundles apart; JSON has it whole.
func shortDigest(digest string) string {
	digest = strings.TrimPrefix(digest, "sha256:")
	return digest[:min(12, len(digest))]
}

func recapOf(recap map[string]manifest.Recap) string {
	var sum manifest.Recap
	for _, r := range recap {
		sum.OK, sum.Changed, sum.Failed, sum.Unreachable = sum.OK+r.OK, sum.Changed+r.Changed, sum.Failed+r.Failed, sum.Unreachable+r.Unreachable
	}
	if len(recap) == 0 {
		return ""
	}
	return fmt.Sprintf("ok=%d changed=%d failed=%d unreachable=%d", sum.OK, sum.Changed, sum.Failed, sum.Unreachable)
}

// messageMost keeps a row on one line of a wide terminal; JSON has the text whole.
const messageMost = 100

func oneLine(text string) string {
	text = strings.Join(strings.Fields(render.Clean(text)), " ")
	if runes := []rune(text); len(runes) > messageMost {
		return string(runes[:messageMost]) + "…"
	}
	return text
}
