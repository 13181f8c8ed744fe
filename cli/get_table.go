package cli

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"burrow.dev/burrow/manifest"
)

// column is one column of a table of records.
type column struct {
	title string
	wide  bool // only with -o wide
	cell  func(rec manifest.Record) string
}

// table is the columns of one kind.
type table struct{ columns []column }

func tableOf(kind manifest.Kind, wide bool) table {
	columns := append([]column{
		{title: "NAME", cell: func(r manifest.Record) string { return r.Metadata.Name }},
		{title: "PHASE", cell: phaseCell},
	}, kindColumns(kind)...)
	columns = append(columns, column{title: "UID", wide: true, cell: func(r manifest.Record) string { return r.Metadata.UID }})
	return table{slices.DeleteFunc(columns, func(c column) bool { return c.wide && !wide })}
}

func (t table) header() []string {
	var titles []string
	for _, c := range t.columns {
		titles = append(titles, c.title)
	}
	return append(titles, "AGE")
}

func (t table) row(rec manifest.Record, now time.Time) []string {
	var cells []string
	for _, c := range t.columns {
		cells = append(cells, c.cell(rec))
	}
	return append(cells, age(rec.Metadata.CreatedAt, now))
}

func kindColumns(kind manifest.Kind) []column {
	switch kind {
	case manifest.KindServer:
		return serverColumns()
	case manifest.KindNetwork:
		return networkColumns()
	case manifest.KindVolume:
		return volumeColumns()
	case manifest.KindImage:
		return imageColumns()
	case manifest.KindPlaybook:
		return playbookColumns()
	case manifest.KindHost:
		return hostColumns()
	}
	return nil
}

// phaseCell is the phase, with the step of an open operation: "Provisioning: build volumes".
func phaseCell(rec manifest.Record) string {
	text := string(rec.Status.Phase)
	if op := rec.Status.Operation; op != nil && op.Step != "" && !rec.Status.Phase.Settled() {
		text += ": " + op.Step
	}
	for _, c := range rec.Status.Conditions {
		// Held says already that it needs attention.
		if c.Status && (c.Type != manifest.ConditionAttention || rec.Status.Phase.Settled()) {
			text += ", " + c.Type
		}
	}
	return text
}

func serverColumns() []column {
	return []column{
		{title: "ADDRESSES", cell: func(r manifest.Record) string { return strings.Join(addressesOf(r), ",") }},
		{title: "HOST", cell: func(r manifest.Record) string { return r.Status.Host }},
		{title: "IMAGE", wide: true, cell: serverCell(func(s manifest.ServerSpec) string { return s.Image })},
		{title: "CPU", wide: true, cell: serverCell(func(s manifest.ServerSpec) string { return strconv.Itoa(s.CPU) })},
		{title: "MEMORY", wide: true, cell: serverCell(func(s manifest.ServerSpec) string { return mebibytes(s.Memory) })},
		{title: "LOGIN", wide: true, cell: func(r manifest.Record) string { return r.Status.Login }},
		{title: "REBOOTED", wide: true, cell: rebootedCell},
	}
}

// rebootedCell is the time of day at which a guest restarted itself; a watched table stays
// true, which an age would not.
func rebootedCell(rec manifest.Record) string {
	if rec.Status.RebootedAt == nil {
		return ""
	}
	return rec.Status.RebootedAt.Local().Format(time.DateTime)
}

func networkColumns() []column {
	status := func(get func(*manifest.NetworkStatus) string) func(manifest.Record) string {
		return func(r manifest.Record) string {
			if r.Status.Network == nil {
				return ""
			}
			return get(r.Status.Network)
		}
	}
	return []column{
		{title: "MODE", cell: status(func(n *manifest.NetworkStatus) string { return string(n.Mode) })},
		{title: "SUBNETS", cell: status(func(n *manifest.NetworkStatus) string {
			var all []string
			for _, s := range n.Subnets {
				all = append(all, s.CIDR)
			}
			return strings.Join(all, ",")
		})},
		{title: "DOMAIN", wide: true, cell: status(func(n *manifest.NetworkStatus) string { return n.Domain })},
		{title: "BRIDGE", wide: true, cell: status(func(n *manifest.NetworkStatus) string { return n.Bridge })},
		{title: "MTU", wide: true, cell: status(func(n *manifest.NetworkStatus) string { return strconv.Itoa(n.MTU) })},
	}
}

func volumeColumns() []column {
	status := func(get func(*manifest.VolumeStatus) string) func(manifest.Record) string {
		return func(r manifest.Record) string {
			if r.Status.Volume == nil {
				return ""
			}
			return get(r.Status.Volume)
		}
	}
	return []column{
		{title: "SIZE", cell: status(func(v *manifest.VolumeStatus) string { return gibibytes(v.SizeGiB) })},
		{title: "ATTACHED", cell: status(func(v *manifest.VolumeStatus) string { return v.AttachedTo })},
		{title: "HOST", cell: func(r manifest.Record) string { return r.Status.Host }},
		{title: "POOL", wide: true, cell: status(func(v *manifest.VolumeStatus) string { return v.Pool })},
		{title: "FORMAT", wide: true, cell: status(func(v *manifest.VolumeStatus) string { return v.Format })},
	}
}

func imageColumns() []column {
	status := func(get func(*manifest.ImageStatus) string) func(manifest.Record) string {
		return func(r manifest.Record) string {
			if r.Status.Image == nil {
				return ""
			}
			return get(r.Status.Image)
		}
	}
	return []column{
		{title: "OS", cell: status(func(i *manifest.ImageStatus) string { return strings.TrimSpace(i.OSName + " " + i.OSVersion) })},
		{title: "SIZE", cell: status(func(i *manifest.ImageStatus) string { return mebibytes(int(i.SizeBytes >> 20)) })},
		{title: "DISK", cell: status(func(i *manifest.ImageStatus) string { return gibibytes(i.VirtualGiB) })},
		{title: "LOGIN", cell: status(func(i *manifest.ImageStatus) string { return i.User })},
		{title: "HOSTS", wide: true, cell: status(func(i *manifest.ImageStatus) string { return strings.Join(i.Hosts, ",") })},
		{title: "SHA256", wide: true, cell: status(func(i *manifest.ImageStatus) string { return i.SHA256[:min(12, len(i.SHA256))] })},
		{title: "SOURCE", wide: true, cell: status(func(i *manifest.ImageStatus) string { return i.Source })},
	}
}

func playbookColumns() []column {
	return []column{
		{title: "SERVERS", cell: func(r manifest.Record) string { return strings.Join(targetNames(r), ",") }},
		{title: "RUN", cell: func(r manifest.Record) string {
			if r.Status.Playbook == nil {
				return ""
			}
			return r.Status.Playbook.RunID
		}},
	}
}

// targetNames are the servers that a Playbook's latest run was over.
func targetNames(rec manifest.Record) []string {
	var names []string
	for _, identity := range rec.Status.Targets {
		names = append(names, manifest.TargetName(identity))
	}
	return names
}

// hostSpec is what is shown of a host's spec, as its worker registers it.
type hostSpec struct {
	Unschedulable     bool                `json:"unschedulable"`
	CPU               int                 `json:"cpu"`
	MemoryMiB         int                 `json:"memoryMiB"`
	Pools             map[string]hostPool `json:"pools"`
	Accelerator       string              `json:"accelerator"`
	AcceleratorReason string              `json:"acceleratorReason"`
	Versions          map[string]string   `json:"versions"`
}

// hostPool is a storage pool in a host's spec.
type hostPool struct {
	CapacityGiB int `json:"capacityGiB"`
}

func hostColumns() []column {
	spec := func(get func(hostSpec) string) func(manifest.Record) string {
		return func(r manifest.Record) string {
			var s hostSpec
			if json.Unmarshal(r.Spec, &s) != nil {
				return "?"
			}
			return get(s)
		}
	}
	return []column{
		{title: "ACCELERATOR", cell: spec(func(s hostSpec) string {
			if s.AcceleratorReason != "" {
				return s.Accelerator + " (" + s.AcceleratorReason + ")"
			}
			return s.Accelerator
		})},
		{title: "CPU", cell: spec(func(s hostSpec) string { return strconv.Itoa(s.CPU) })},
		{title: "MEMORY", cell: spec(func(s hostSpec) string { return mebibytes(s.MemoryMiB) })},
		{title: "POOLS", cell: spec(func(s hostSpec) string {
			var pools []string
			for _, name := range slices.Sorted(maps.Keys(s.Pools)) {
				pools = append(pools, name+"="+gibibytes(s.Pools[name].CapacityGiB))
			}
			return strings.Join(pools, ",")
		})},
		{title: "VERSIONS", wide: true, cell: spec(func(s hostSpec) string {
			var all []string
			for _, name := range slices.Sorted(maps.Keys(s.Versions)) {
				all = append(all, name+" "+s.Versions[name])
			}
			return strings.Join(all, ", ")
		})},
	}
}

func serverCell(get func(manifest.ServerSpec) string) func(manifest.Record) string {
	return func(r manifest.Record) string {
		var spec manifest.ServerSpec
		if json.Unmarshal(r.Spec, &spec) != nil {
			return "?"
		}
		return get(spec)
	}
}

// addressesOf gives a server's addresses without prefix lengths, in the order of its NICs.
func addressesOf(rec manifest.Record) []string {
	var all []string
	for _, p := range rec.Status.Ports {
		for _, a := range p.Addresses {
			bare, _, _ := strings.Cut(a, "/")
			all = append(all, bare)
		}
	}
	if all == nil {
		return rec.Status.Addresses
	}
	return all
}

func mebibytes(n int) string {
	if n >= 1024 && n%1024 == 0 {
		return gibibytes(n / 1024)
	}
	return fmt.Sprintf("%d MiB", n)
}

func gibibytes(n int) string { return fmt.Sprintf("%d GiB", n) }

// age is how long ago something was, in its largest unit.
func age(at, now time.Time) string {
	if at.IsZero() {
		return ""
	}
	d := max(0, now.Sub(at))
	switch {
	case d < 2*time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < 2*time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	}
	return fmt.Sprintf("%dd", int(d.Hours()/24))
}
