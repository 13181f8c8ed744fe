package cli

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	ucli "github.com/urfave/cli/v2"

	"burrow.dev/burrow/cli/render"
	"burrow.dev/burrow/internal/gateway"
	"burrow.dev/burrow/manifest"
)

// hostCommand groups what concerns hosts.
func hostCommand() *ucli.Command {
	return &ucli.Command{
		Name: "host", Category: categoryResources, Usage: "list the hosts, tell about one, and declare one lost",
		Subcommands: []*ucli.Command{
			hostListCommand(),
			hostDescribeCommand(),
			hostLostCommand(),
		},
	}
}

func hostListCommand() *ucli.Command {
	return &ucli.Command{
		Name: "list", Aliases: []string{"ls"}, Usage: "list the hosts, with what the servers and volumes there take of them",
		Description: "STATE is Ready; Down while its worker does not answer, since when is beside it; or Lost, when somebody\n" +
			"declared that it does not come back. `burrow get hosts` lists what the hosts are.",
		Flags: []ucli.Flag{outputFlag("table", "json", "yaml", "name")},
		Action: func(c *ucli.Context) error {
			gw, err := openGateway(c)
			if err != nil {
				return err
			}
			defer func() { _ = gw.Close() }()
			q := query{kinds: []manifest.Kind{manifest.KindHost}}
			hosts, err := q.fetch(c, gw)
			if err != nil {
				return err
			}
			if output(c) != "table" {
				return printRecords(c, q, hosts)
			}
			there, err := onHosts(c, gw)
			if err != nil {
				return err
			}
			var rows [][]string
			for _, rec := range hosts {
				rows = append(rows, hostRow(rec, there[rec.Metadata.Name], time.Now()))
			}
			return render.Table(c.App.Writer, []string{"NAME", "STATE", "SINCE", "SERVERS", "CPU", "MEMORY", "DISK"}, rows)
		},
	}
}

func hostDescribeCommand() *ucli.Command {
	return &ucli.Command{
		Name: "describe", Usage: "tell all about one host: what it has, what is there, and what it owes when it is lost", ArgsUsage: "NAME",
		Flags: []ucli.Flag{outputFlag("table", "json", "yaml")},
		Action: func(c *ucli.Context) error {
			name, err := hostArg(c)
			if err != nil {
				return err
			}
			return describeOne(c, Ref{manifest.KindHost, name})
		},
	}
}

// hostArg reads one host as NAME, `host NAME` or host/NAME.
func hostArg(c *ucli.Context) (string, error) {
	words := c.Args().Slice()
	if len(words) == 1 && !strings.Contains(words[0], "/") {
		words = []string{manifest.KindHost.Word(), words[0]}
	}
	if len(words) == 0 || len(words) > 2 {
		return "", usageErrorf(c, "name one host")
	}
	kind, name, err := manifest.ParseKindName(words...)
	if err != nil {
		return "", usageErrorf(c, "%w", err)
	}
	if kind != manifest.KindHost {
		return "", usageErrorf(c, "it takes a host, and %s is a %s", name, kind.Word())
	}
	return name, nil
}

// tenancy is what is on a host, by the records.
type tenancy struct {
	servers, volumes []manifest.Record
	cpu, memory, gib int
}

// onHosts gives what is on each host.
func onHosts(c *ucli.Context, gw *gateway.Client) (map[string]*tenancy, error) {
	all := map[string]*tenancy{}
	at := func(rec manifest.Record) *tenancy {
		if all[rec.Status.Host] == nil {
			all[rec.Status.Host] = &tenancy{}
		}
		return all[rec.Status.Host]
	}
	err := gw.Each(c.Context, manifest.KindServer, func(rec manifest.Record) error {
		t := at(rec)
		t.servers = append(t.servers, rec)
		var spec manifest.ServerSpec
		if json.Unmarshal(rec.Spec, &spec) == nil {
			t.cpu, t.memory = t.cpu+spec.CPU, t.memory+spec.Memory
		}
		for _, d := range rec.Status.Disks {
			if d.Owned {
				t.gib += d.SizeGiB
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	err = gw.Each(c.Context, manifest.KindVolume, func(rec manifest.Record) error {
		t := at(rec)
		t.volumes = append(t.volumes, rec)
		if v := rec.Status.Volume; v != nil {
			t.gib += v.SizeGiB
		}
		return nil
	})
	return all, err
}

// hostState is the phase of a host in a word for people, and since when it is so.
func hostState(rec manifest.Record) (state string, since time.Time) {
	s := rec.Status
	if s.Lost != nil {
		since = s.Lost.Since
	}
	if s.Phase == manifest.PhaseUnknown {
		return "Down", since
	}
	return string(s.Phase), since
}

func hostRow(rec manifest.Record, t *tenancy, now time.Time) []string {
	if t == nil {
		t = &tenancy{}
	}
	var spec hostSpec
	_ = json.Unmarshal(rec.Spec, &spec) // what cannot be read has nothing
	pools := 0
	for _, p := range spec.Pools {
		pools += p.CapacityGiB
	}
	state, since := hostState(rec)
	if spec.Unschedulable {
		state += ", unschedulable"
	}
	return []string{
		rec.Metadata.Name, state, age(since, now), fmt.Sprint(len(t.servers)),
		fmt.Sprintf("%d of %d", t.cpu, spec.CPU), fmt.Sprintf("%s of %s", mebibytes(t.memory), mebibytes(spec.MemoryMiB)),
		fmt.Sprintf("%d of %s", t.gib, gibibytes(pools)),
	}
}

// host tells what is on a host, and what it owes.
func (d *description) host(rec manifest.Record, t *tenancy) {
	if t == nil {
		t = &tenancy{}
	}
	if cells := hostRow(rec, t, d.now); len(t.servers)+len(t.volumes) > 0 {
		d.field("Taken", "CPU %s, memory %s, disk %s", cells[4], cells[5], cells[6])
	}
	var rows [][]string
	for _, r := range slices.Concat(t.servers, t.volumes) {
		rows = append(rows, []string{manifest.Ref(r.Kind, r.Metadata.Name), phaseCell(r), strings.Join(addressesOf(r), ",")})
	}
	slices.SortFunc(rows, func(a, b []string) int { return strings.Compare(a[0], b[0]) })
	if len(rows) > 0 {
		d.section("What is there")
		d.table([]string{"RESOURCE", "PHASE", "ADDRESSES"}, rows)
	}
	if len(rec.Status.Debts) > 0 {
		d.section("What it does first when it is back")
		for _, debt := range rec.Status.Debts {
			d.b.WriteString("  " + render.CleanLines(debt) + "\n")
		}
	}
}
