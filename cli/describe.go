package cli

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	ucli "github.com/urfave/cli/v2"

	"burrow.dev/burrow/cli/render"
	"burrow.dev/burrow/manifest"
)

// describeCommand tells all there is to know of one resource.
func describeCommand() *ucli.Command {
	return &ucli.Command{
		Name: "describe", Category: categoryResources, Usage: "tell all about one resource", ArgsUsage: "KIND NAME | KIND/NAME",
		Flags: []ucli.Flag{outputFlag("table", "json", "yaml")},
		Action: func(c *ucli.Context) error {
			refs, err := resourceArgs(c, 1)
			if err != nil {
				return err
			}
			return describeOne(c, refs[0])
		},
	}
}

func describeOne(c *ucli.Context, ref Ref) error {
	gw, err := openGateway(c)
	if err != nil {
		return err
	}
	defer func() { _ = gw.Close() }()
	rec, err := look(c.Context, gw, ref)
	if err != nil {
		return err
	}
	switch output(c) {
	case "json":
		return printJSON(c.App.Writer, rec)
	case "yaml":
		return printYAML(c.App.Writer, rec)
	}
	d := &description{now: time.Now()}
	d.record(rec)
	if ref.Kind == manifest.KindHost {
		there, err := onHosts(c, gw)
		if err != nil {
			return err
		}
		d.host(rec, there[ref.Name])
	}
	d.spec(rec)
	_, err = io.WriteString(c.App.Writer, d.b.String())
	return err
}

// description collects the text.
type description struct {
	b   strings.Builder
	now time.Time
}

// labelWidth lines up the values behind the labels of a description.
const labelWidth = 14

// field writes one labelled value; an empty one is left out.
func (d *description) field(label, format string, args ...any) {
	value := strings.TrimSpace(render.CleanLines(fmt.Sprintf(format, args...)))
	if value == "" {
		return
	}
	value = strings.ReplaceAll(value, "\n", "\n"+strings.Repeat(" ", labelWidth))
	fmt.Fprintf(&d.b, "%-*s%s\n", labelWidth, label+":", value)
}

func (d *description) section(title string) { fmt.Fprintf(&d.b, "\n%s\n", title) }

func (d *description) table(header []string, rows [][]string) {
	var table strings.Builder
	_ = render.Table(&table, header, rows) // writing to memory does not fail
	for line := range strings.Lines(table.String()) {
		d.b.WriteString("  " + line)
	}
}

func (d *description) record(rec manifest.Record) {
	m, s := rec.Metadata, rec.Status
	d.field(string(rec.Kind), "%s", m.Name)
	d.field("Comment", "%s", m.Comment)
	d.field("Labels", "%s", labelText(m.Labels))
	d.field("Phase", "%s", s.Phase)
	d.field("Reason", "%s", s.Message)
	d.field("Next", "%s", mend(rec))
	d.field("Host", "%s", s.Host)
	d.field("Login", "%s", s.Login)
	d.field("Servers", "%s", strings.Join(targetNames(rec), ", "))
	if s.RebootedAt != nil {
		d.field("Rebooted", "%s", d.since(*s.RebootedAt, ""))
	}
	d.field("UID", "%s", m.UID)
	d.field("Created", "%s", d.since(m.CreatedAt, m.CreatedBy))
	d.operation(s.Operation)
	d.conditions(s.Conditions)
	d.ports(s.Ports)
	d.disks(s.Disks)
	d.source(rec)
	d.playbook(s.Playbook)
	d.network(s.Network)
	d.volume(s.Volume)
	d.image(s.Image)
}

// mend says what a person can do about a record that waits or failed.
func mend(rec manifest.Record) string {
	ref := manifest.Ref(rec.Kind, rec.Metadata.Name)
	switch rec.Status.Phase {
	case manifest.PhaseHeld:
		return "mend the cause, then: burrow retry " + ref + "   (with an edited playbook: -f PATH)\n" +
			"go on without the playbook: burrow skip " + ref + "\ngive up and undo: burrow abort " + ref
	case manifest.PhaseFailed:
		return "mend the cause, then apply again; forget it: burrow delete " + ref
	case manifest.PhaseProvisioning, manifest.PhaseDeleting:
		return "follow it: burrow watch " + ref
	case manifest.PhaseStopped:
		return "start it: burrow start " + ref
	}
	return ""
}

// prefixed puts words before a text that is there.
func prefixed(words, text string) string {
	if text == "" {
		return ""
	}
	return words + text
}

func (d *description) since(at time.Time, by string) string {
	if at.IsZero() {
		return ""
	}
	text := at.Local().Format(time.DateTime) + " (" + age(at, d.now) + " ago)"
	if by != "" {
		text += " by " + by
	}
	return text
}

func (d *description) operation(op *manifest.Operation) {
	if op == nil {
		return
	}
	text := op.Type
	if op.Step != "" {
		text += ", step " + op.Step
	}
	d.field("Operation", "%s%s", text, prefixed(", since ", d.since(op.Since, "")))
}

func (d *description) conditions(conditions []manifest.Condition) {
	var rows [][]string
	for _, c := range conditions {
		rows = append(rows, []string{c.Type, fmt.Sprint(c.Status), age(c.Since, d.now), c.Reason, c.Message})
	}
	if len(rows) > 0 {
		d.section("Conditions")
		d.table([]string{"TYPE", "STATUS", "SINCE", "REASON", "MESSAGE"}, rows)
	}
}

func (d *description) ports(ports []manifest.Port) {
	var rows [][]string
	for _, p := range ports {
		rows = append(rows, []string{
			p.Eth(), p.Network, strings.Join(p.Addresses, ","), strings.Join(p.Gateways, ","), p.MAC, p.Device, p.Bridge, vlanText(p),
		})
	}
	if len(rows) > 0 {
		d.section("Network interfaces")
		d.table([]string{"NIC", "NETWORK", "ADDRESSES", "GATEWAY", "MAC", "DEVICE", "BRIDGE", "VLAN"}, rows)
	}
}

func vlanText(p manifest.Port) string {
	var all []string
	for _, v := range p.VLANs {
		all = append(all, fmt.Sprint(v))
	}
	if p.NativeVLAN != 0 {
		all = append(all, fmt.Sprintf("native %d", p.NativeVLAN))
	}
	return strings.Join(all, ",")
}

func (d *description) disks(disks []manifest.Disk) {
	var rows [][]string
	for _, k := range disks {
		kind := "attached"
		if k.Owned {
			kind = "its own"
		}
		rows = append(rows, []string{k.Target, k.Name, gibibytes(k.SizeGiB), k.Format, kind, k.Serial, k.Path})
	}
	if len(rows) > 0 {
		d.section("Disks")
		d.table([]string{"DISK", "NAME", "SIZE", "FORMAT", "VOLUME", "SERIAL", "PATH"}, rows)
	}
}

// source says which commit of a repository the playbook is from.
func (d *description) source(rec manifest.Record) {
	run, err := ansibleOf(rec)
	if err == nil && run != nil && run.Source != nil {
		d.section("Source")
		d.field("  URL", "%s", run.Source.URL)
		d.field("  Ref", "%s", cmp.Or(run.Source.Ref, "HEAD"))
		d.field("  Commit", "%s", cmp.Or(run.Source.Commit, "none: its folder was edited"))
	}
}

func (d *description) playbook(p *manifest.PlaybookStatus) {
	if p == nil {
		return
	}
	d.section("Playbook")
	result := "failed"
	if p.OK {
		result = "ok"
	}
	d.field("  Run", "%s, %s%s", p.RunID, result, prefixed(", ended ", d.since(p.EndedAt, "")))
	var rows [][]string
	for _, host := range slices.Sorted(maps.Keys(p.Recap)) {
		r := p.Recap[host]
		cells := []string{host}
		for _, n := range []int{r.OK, r.Changed, r.Unreachable, r.Failed, r.Skipped, r.Rescued, r.Ignored} {
			cells = append(cells, fmt.Sprint(n))
		}
		rows = append(rows, cells)
	}
	if len(rows) > 0 {
		d.table([]string{"HOST", "OK", "CHANGED", "UNREACHABLE", "FAILED", "SKIPPED", "RESCUED", "IGNORED"}, rows)
	}
}

func (d *description) network(n *manifest.NetworkStatus) {
	if n == nil {
		return
	}
	d.section("Network")
	d.field("  Mode", "%s", n.Mode)
	for _, s := range n.Subnets {
		d.field("  Subnet", "%s%s", s.CIDR, prefixed(", gateway ", s.Gateway))
	}
	d.field("  Domain", "%s", n.Domain)
	d.field("  Bridge", "%s, MTU %d", n.Bridge, n.MTU)
	d.field("  Namespace", "%s", n.Namespace)
}

func (d *description) volume(v *manifest.VolumeStatus) {
	if v == nil {
		return
	}
	d.section("Volume")
	d.field("  Size", "%s, %s", gibibytes(v.SizeGiB), v.Format)
	d.field("  Attached", "%s", v.AttachedTo)
	d.field("  Pool", "%s, volume %s", v.Pool, v.Volume)
	d.field("  Path", "%s", v.Path)
	d.field("  Serial", "%s", v.Serial)
}

func (d *description) image(i *manifest.ImageStatus) {
	if i == nil {
		return
	}
	d.section("Image")
	d.field("  System", "%s %s", i.OSName, i.OSVersion)
	d.field("  Login", "%s", i.User)
	d.field("  Size", "%s stored as %s, disk of %s", mebibytes(int(i.SizeBytes>>20)), i.Format, gibibytes(i.VirtualGiB))
	d.field("  SHA256", "%s", i.SHA256)
	d.field("  Source", "%s", i.Source)
	d.field("  Hosts", "%s", strings.Join(i.Hosts, ", "))
}

func (d *description) spec(rec manifest.Record) {
	document, err := yaml.JSONToYAML(rec.Spec)
	if err != nil || len(rec.Spec) == 0 {
		return
	}
	d.section("Spec")
	for line := range strings.Lines(render.CleanLines(string(document))) {
		d.b.WriteString("  " + line)
	}
}

func labelText(labels map[string]string) string {
	var all []string
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		all = append(all, key+"="+labels[key])
	}
	return strings.Join(all, ", ")
}
