package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	ucli "github.com/urfave/cli/v2"

	"burrow.dev/burrow/cli/render"
	"burrow.dev/burrow/internal/gateway"
	"burrow.dev/burrow/internal/plaintext"
	"burrow.dev/burrow/manifest"
)

// rowsAtOnce bounds what is held of a large network, and aligns what is seen together.
const rowsAtOnce = 1000

func networkIPsCommand() *ucli.Command {
	return &ucli.Command{
		Name: "ips", Usage: "list the addresses of a network: who has each, since when, and how many are left", ArgsUsage: "NETWORK",
		Description: "First the totals of each subnet, then what is used, reserved, or in quarantine after its release.\n" +
			"Network and broadcast address are not counted, nor is the gateway. Any worker answers.",
		Flags: []ucli.Flag{outputFlag("table", "wide", "json", "yaml")},
		Action: func(c *ucli.Context) error {
			if c.NArg() != 1 {
				return usageErrorf(c, "name one network")
			}
			network, err := networkName(c, c.Args().First())
			if err != nil {
				return err
			}
			gw, err := openGateway(c)
			if err != nil {
				return err
			}
			defer func() { _ = gw.Close() }()
			p := addressPrinterFor(c, network)
			if err := gw.ListAddresses(c.Context, network, p.totals, p.address); err != nil {
				return near(c.Context, gw, Ref{manifest.KindNetwork, network}, err)
			}
			return p.end()
		},
	}
}

// addressPrinter prints a network's addresses as they come.
type addressPrinter interface {
	totals(subnets []gateway.SubnetUsage) error
	address(a gateway.Address) error
	end() error
}

func addressPrinterFor(c *ucli.Context, network string) addressPrinter {
	if p := documentPrinter(output(c), c.App.Writer, network); p != nil {
		return p
	}
	return &addressTable{w: c.App.Writer, wide: output(c) == "wide", now: time.Now()}
}

// documentPrinter prints a document for programs; nil for formats that are for people.
func documentPrinter(format string, w io.Writer, network string) addressPrinter {
	head := addressDocument{APIVersion: manifest.APIVersion, Kind: "AddressList", Network: network}
	switch format {
	case "json":
		return &addressJSON{w: w, head: head}
	case "yaml":
		return &addressYAML{w: w, head: head}
	}
	return nil
}

// addressTable is two tables: totals, and addresses.
type addressTable struct {
	w       io.Writer
	wide    bool
	now     time.Time
	rows    *render.Rows
	pending [][]string
}

func (t *addressTable) totals(subnets []gateway.SubnetUsage) error {
	var rows [][]string
	for _, s := range subnets {
		rows = append(rows, []string{s.Subnet, s.Size, s.Used, s.Reserved, s.Quarantined, s.Free})
	}
	header := []string{"ADDRESS", "STATE", "OWNER", "SINCE", "LEFT"}
	if t.wide {
		header = append(header, "COMMENT")
	}
	t.rows = render.NewRows(t.w, header)
	return render.Table(t.w, []string{"SUBNET", "SIZE", "USED", "RESERVED", "QUARANTINED", "FREE"}, rows)
}

func (t *addressTable) address(a gateway.Address) error {
	if t.pending == nil {
		fmt.Fprintln(t.w)
	}
	addresses, left := a.First, ""
	if a.Last != a.First {
		addresses += "-" + a.Last
	}
	if !a.Until.IsZero() {
		left = fmt.Sprintf("%ds", max(0, int(a.Until.Sub(t.now).Seconds()+0.5)))
	}
	row := []string{addresses, a.State, a.Owner, age(a.Since, t.now), left}
	if t.wide {
		row = append(row, a.Comment)
	}
	t.pending = append(t.pending, row)
	if len(t.pending) < rowsAtOnce {
		return nil
	}
	return t.end()
}

func (t *addressTable) end() error {
	if len(t.pending) == 0 {
		return nil
	}
	err := t.rows.Write(t.pending)
	t.pending = t.pending[:0]
	return err
}

// addressDocument is the beginning of the document; the addresses follow it.
type addressDocument struct {
	APIVersion string        `json:"apiVersion"`
	Kind       string        `json:"kind"`
	Network    string        `json:"network"`
	Subnets    []subnetCount `json:"subnets"`
}

type subnetCount struct {
	Subnet      string `json:"subnet"`
	Size        count  `json:"size"`
	Used        count  `json:"used"`
	Reserved    count  `json:"reserved"`
	Quarantined count  `json:"quarantined"`
	Free        count  `json:"free"`
}

// count is a number, or words where there are too many for one.
type count string

// MarshalJSON implements json.Marshaler.
func (n count) MarshalJSON() ([]byte, error) {
	if _, err := strconv.ParseUint(string(n), 10, 64); err == nil {
		return []byte(n), nil
	}
	return json.Marshal(string(n))
}

func (d *addressDocument) count(subnets []gateway.SubnetUsage) {
	d.Subnets = []subnetCount{}
	for _, s := range subnets {
		d.Subnets = append(d.Subnets, subnetCount{
			s.Subnet, count(s.Size), count(s.Used), count(s.Reserved), count(s.Quarantined), count(s.Free),
		})
	}
}

// addressItem is one address in a document.
type addressItem struct {
	Address string     `json:"address"`
	Last    string     `json:"last,omitempty"` // of a range
	State   string     `json:"state"`
	Owner   string     `json:"owner"`
	Since   *time.Time `json:"since,omitempty"`
	Until   *time.Time `json:"until,omitempty"`
	Comment string     `json:"comment,omitempty"`
}

func itemOf(a gateway.Address) addressItem {
	item := addressItem{Address: a.First, State: a.State, Owner: a.Owner, Comment: a.Comment}
	if a.Last != a.First {
		item.Last = a.Last
	}
	if !a.Since.IsZero() {
		item.Since = &a.Since
	}
	if !a.Until.IsZero() {
		item.Until = &a.Until
	}
	return item
}

// addressJSON is one JSON document, written as it comes.
type addressJSON struct {
	w    io.Writer
	head addressDocument
	some bool
}

func (j *addressJSON) totals(subnets []gateway.SubnetUsage) error {
	j.head.count(subnets)
	text, err := json.MarshalIndent(j.head, "", "  ")
	if err != nil {
		return err
	}
	_, err = io.WriteString(j.w, strings.TrimSuffix(string(plaintext.EscapeJSON(text)), "\n}")+",\n  \"addresses\": [")
	return err
}

func (j *addressJSON) address(a gateway.Address) error {
	text, err := json.Marshal(itemOf(a))
	if err != nil {
		return err
	}
	before := ",\n    "
	if !j.some {
		before, j.some = "\n    ", true
	}
	_, err = io.WriteString(j.w, before+string(plaintext.EscapeJSON(text)))
	return err
}

func (j *addressJSON) end() error {
	closing := "]\n}\n"
	if j.some {
		closing = "\n  ]\n}\n"
	}
	_, err := io.WriteString(j.w, closing)
	return err
}

// addressYAML is the same document as YAML.
type addressYAML struct {
	w    io.Writer
	head addressDocument
	some bool
}

func (y *addressYAML) totals(subnets []gateway.SubnetUsage) error {
	y.head.count(subnets)
	return printYAML(y.w, y.head)
}

func (y *addressYAML) address(a gateway.Address) error {
	text, err := json.Marshal(itemOf(a))
	if err != nil {
		return err
	}
	if text, err = yamlOf(text); err != nil {
		return err
	}
	text = []byte("- " + strings.ReplaceAll(strings.TrimSuffix(string(text), "\n"), "\n", "\n  ") + "\n")
	if !y.some {
		y.some = true
		fmt.Fprintln(y.w, "addresses:")
	}
	_, err = y.w.Write(text)
	return err
}

func (y *addressYAML) end() error {
	if !y.some {
		fmt.Fprintln(y.w, "addresses: []")
	}
	return nil
}
