package cli

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	ucli "github.com/urfave/cli/v2"

	"burrow.dev/burrow/cli/render"
	"burrow.dev/burrow/internal/gateway"
	"burrow.dev/burrow/manifest"
)

// getCommand lists records.
func getCommand() *ucli.Command {
	return &ucli.Command{
		Name: "get", Category: categoryResources, Usage: "list what there is, and watch it change",
		ArgsUsage: "[KIND [NAME ...] | KIND/NAME ...]",
		Flags: []ucli.Flag{
			outputFlag("table", "wide", "json", "yaml", "name"),
			&ucli.BoolFlag{Name: "watch", Aliases: []string{"w"}, Usage: "go on with every change until Ctrl-C"},
			&ucli.StringFlag{Name: "selector", Aliases: []string{"l"}, Usage: "only what has these `LABELS`: key=value,key"},
		},
		Action: get,
	}
}

// query is what a get asks for.
type query struct {
	kinds    []manifest.Kind
	names    []string // empty: all of the kinds
	selector selector
}

func get(c *ucli.Context) error {
	q, err := queryOf(c)
	if err != nil {
		return err
	}
	gw, err := openGateway(c)
	if err != nil {
		return err
	}
	if c.Bool("watch") {
		return watchRecords(c, gw, q)
	}
	defer func() { _ = gw.Close() }()
	if output(c) == "json" && len(q.names) == 0 {
		return q.streamJSON(c, gw)
	}
	records, err := q.fetch(c, gw)
	if err != nil {
		return err
	}
	return printRecords(c, q, records)
}

// listedKinds are those that a get without a kind lists, in this order.
func listedKinds() []manifest.Kind {
	return []manifest.Kind{manifest.KindServer, manifest.KindNetwork, manifest.KindVolume, manifest.KindImage, manifest.KindPlaybook}
}

func queryOf(c *ucli.Context) (query, error) {
	sel, err := parseSelector(c.String("selector"))
	if err != nil {
		return query{}, usageErrorf(c, "%w", err)
	}
	words := c.Args().Slice()
	switch {
	case len(words) == 0, len(words) == 1 && words[0] == "all":
		return query{kinds: listedKinds(), selector: sel}, nil
	case len(words) == 1 && !strings.Contains(words[0], "/"):
		kind, err := manifest.ParseKind(words[0])
		if err != nil {
			return query{}, usageErrorf(c, "%w", err)
		}
		return query{kinds: []manifest.Kind{kind}, selector: sel}, nil
	}
	refs, err := parseRefs(words)
	if err != nil {
		return query{}, usageErrorf(c, "%w", err)
	}
	q := query{kinds: []manifest.Kind{refs[0].Kind}, selector: sel}
	for _, ref := range refs {
		if ref.Kind != q.kinds[0] {
			return query{}, usageErrorf(c, "name resources of one kind at a time")
		}
		q.names = append(q.names, ref.Name)
	}
	return q, nil
}

// streamJSON prints all records of the kinds as they come.
func (q query) streamJSON(c *ucli.Context, gw *gateway.Client) error {
	out := bufio.NewWriter(c.App.Writer)
	list := jsonList{w: out}
	for _, kind := range q.kinds {
		err := gw.Each(c.Context, kind, func(rec manifest.Record) error {
			if !q.selector.matches(rec.Metadata.Labels) {
				return nil
			}
			return list.add(rec)
		})
		if err != nil {
			return err
		}
	}
	return errors.Join(list.end(), out.Flush())
}

func (q query) fetch(c *ucli.Context, gw *gateway.Client) ([]manifest.Record, error) {
	var records []manifest.Record
	for _, name := range q.names {
		rec, err := look(c.Context, gw, Ref{q.kinds[0], name})
		if err != nil {
			return nil, err
		}
		records = append(records, rec)
	}
	if len(q.names) > 0 {
		return q.selector.filter(records), nil
	}
	if output(c) == "yaml" {
		for _, kind := range q.kinds {
			more, err := gw.List(c.Context, kind)
			if err != nil {
				return nil, err
			}
			records = append(records, more...)
		}
		return q.selector.filter(records), nil
	}
	for _, kind := range q.kinds {
		err := gw.EachSummary(c.Context, kind, func(rec manifest.Record) error {
			if q.selector.matches(rec.Metadata.Labels) {
				records = append(records, rec)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return records, nil
}

// matches reports whether a record is one that was asked for.
func (q query) matches(rec manifest.Record) bool {
	return slices.Contains(q.kinds, rec.Kind) && (len(q.names) == 0 || slices.Contains(q.names, rec.Metadata.Name)) &&
		q.selector.matches(rec.Metadata.Labels)
}

func printRecords(c *ucli.Context, q query, records []manifest.Record) error {
	w := c.App.Writer
	var document any = listOf(records)
	if len(q.names) == 1 && len(records) == 1 {
		document = records[0]
	}
	switch output(c) {
	case "json":
		return printJSON(w, document)
	case "yaml":
		return printYAML(w, document)
	case "name":
		for _, rec := range records {
			fmt.Fprintln(w, render.Clean(manifest.Ref(rec.Kind, rec.Metadata.Name)))
		}
		return nil
	}
	if len(records) == 0 {
		fmt.Fprintln(c.App.ErrWriter, q.nothing())
		return nil
	}
	return printTables(w, q, records, output(c) == "wide", time.Now())
}

func (q query) nothing() string {
	switch {
	case len(q.selector) > 0:
		return "nothing has these labels"
	case len(q.kinds) == 1:
		return "there is no " + q.kinds[0].Word()
	}
	return "there is nothing yet; build something: burrow apply -f FILE"
}

// printTables prints one table for each kind, with an empty line between.
func printTables(w io.Writer, q query, records []manifest.Record, wide bool, now time.Time) error {
	first := true
	for _, kind := range q.kinds {
		table := tableOf(kind, wide)
		var rows [][]string
		for _, rec := range records {
			if rec.Kind == kind {
				rows = append(rows, table.row(rec, now))
			}
		}
		if len(rows) == 0 {
			continue
		}
		if !first {
			fmt.Fprintln(w)
		}
		first = false
		if err := render.Table(w, table.header(), rows); err != nil {
			return err
		}
	}
	return nil
}

// selector is labels that must be there; an empty value is any.
type selector map[string]string

func parseSelector(text string) (selector, error) {
	sel := selector{}
	for part := range strings.SplitSeq(text, ",") {
		if part == "" {
			continue
		}
		key, value, hasValue := strings.Cut(part, "=")
		if key == "" || hasValue && value == "" || strings.ContainsAny(part, "!<>() ") {
			return nil, fmt.Errorf("label selector %q: write key=value or key, with commas between", text)
		}
		sel[key] = strings.TrimPrefix(value, "=")
	}
	return sel, nil
}

func (s selector) matches(labels map[string]string) bool {
	for key := range maps.Keys(s) {
		value, there := labels[key]
		if !there || s[key] != "" && s[key] != value {
			return false
		}
	}
	return true
}

func (s selector) filter(records []manifest.Record) []manifest.Record {
	return slices.DeleteFunc(records, func(rec manifest.Record) bool { return !s.matches(rec.Metadata.Labels) })
}
