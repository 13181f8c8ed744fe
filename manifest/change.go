package manifest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"burrow.dev/burrow/internal/errs"
)

// ServerChange is what leads a server from its record to what is declared now: the
// smallest steps, or by name what cannot be changed.
type ServerChange struct {
	// Effects says of each field that differs what becomes of it, for people.
	Effects []Effect `json:"effects,omitempty"`
	// Refused is each field that cannot be changed on a server that stands.
	Refused []Refusal `json:"refused,omitempty"`

	// Machine: processors or memory differ.
	Machine bool `json:"machine,omitempty"`
	// Fit: Machine, and the running guest is asked whether it takes the change at once. Not
	// in what earlier versions decided.
	Fit bool `json:"fit,omitempty"`
	// Grow are disks of the server's own that get larger.
	Grow []Growth `json:"grow,omitempty"`
	// AddDisks are new data disks, also those that are attached Volumes.
	AddDisks []Storage `json:"addDisks,omitempty"`
	// DropDisks are attached Volumes that are taken off; their data stays.
	DropDisks []string `json:"dropDisks,omitempty"`
	// AddNICs, DropNICs and TuneNICs name NICs that are plugged in, that are unplugged, and
	// that stay and get other settings.
	AddNICs  []string `json:"addNICs,omitempty"`
	DropNICs []string `json:"dropNICs,omitempty"`
	TuneNICs []string `json:"tuneNICs,omitempty"`
	// AllNICs: not one of the NICs that the server has stays.
	AllNICs bool `json:"allNICs,omitempty"`
	// Playbook: the playbook, its folder or its settings differ, so it runs again.
	Playbook bool `json:"playbook,omitempty"`
}

// ConditionRestart is the type of the condition of a server whose processors or memory are
// as declared only after its next restart.
const ConditionRestart = "RestartNeeded"

// Effect is one field that differs, and what becomes of it.
type Effect struct {
	Field string `json:"field"` // "spec.cpu"
	Text  string `json:"text"`  // "2 → 4, at the next restart"
}

// Refusal is one field that cannot be changed, why, and what to do instead.
type Refusal struct {
	Field   string `json:"field"`
	Reason  string `json:"reason"`
	Instead string `json:"instead"`
}

// Growth is a disk that gets larger.
type Growth struct {
	Disk string `json:"disk"` // as in Disk.Name: "boot", or the data disk's name
	GiB  int    `json:"gib"`
}

// Empty reports that everything is as declared.
func (c ServerChange) Empty() bool { return len(c.Effects) == 0 && len(c.Refused) == 0 }

// Err is all that is refused; nil when nothing is.
func (c ServerChange) Err(object string) error {
	if len(c.Refused) == 0 {
		return nil
	}
	var why, instead []string
	for _, r := range c.Refused {
		why = append(why, r.Field+" "+r.Reason)
		if !slices.Contains(instead, r.Instead) {
			instead = append(instead, r.Instead)
		}
	}
	return errs.NewPermanent(object, "update", errs.Reason("%w: %s", errs.ErrInvalid, strings.Join(why, "; ")), strings.Join(instead, "; "))
}

// NICs reports that the server's NICs, or what is set on them, differ.
func (c ServerChange) NICs() bool { return len(c.AddNICs)+len(c.DropNICs)+len(c.TuneNICs) > 0 }

// NeedsRestart refuses what is changed only while the guest is off, when it is not to be
// (off: it is stopped, or may be restarted).
func (c ServerChange) NeedsRestart(object string, off bool) error {
	const next = "apply again with --restart, or stop the server first"
	switch {
	case off:
	case len(c.DropDisks) > 0:
		return errs.NewPermanent(object, "update", errs.Reason("%w: volumes are detached only while the guest is off: %s", errs.ErrInvalid, strings.Join(c.DropDisks, ", ")), next)
	case c.AllNICs:
		return errs.NewPermanent(object, "update", errs.Reason("%w: every NIC that the server has goes (%s), and a running guest does not know the new ones' addresses before its next boot",
			errs.ErrInvalid, strings.Join(c.DropNICs, ", ")), next)
	}
	return nil
}

// Texts of effects that several fields have.
const (
	onRecord        = "written down; nothing else changes"
	atRebuild       = "written down; the guest gets it when it is rebuilt"
	atRestart       = "the guest sees it after a restart (now with --restart)"
	atOnceOrRestart = "at once where the running guest takes it, else after a restart (now with --restart)"
)

// ChangeServer compares a server that stands with what is declared now. bundle is the
// digest of the playbook's folder.
func ChangeServer(rec Record, meta Metadata, spec ServerSpec, bundle string) (ServerChange, error) {
	var old ServerSpec
	if err := json.Unmarshal(rec.Spec, &old); err != nil {
		return ServerChange{}, errs.NewPermanent(Ref(KindServer, rec.Metadata.Name), "read its record", err, "restore the record from a backup")
	}
	// Both in this version's form: a record may be older than a field.
	have, err := json.Marshal(old)
	if err != nil {
		return ServerChange{}, err
	}
	want, err := json.Marshal(spec)
	if err != nil {
		return ServerChange{}, err
	}
	fields, err := SpecDifferences(have, want)
	if err != nil {
		return ServerChange{}, err
	}
	c := ServerChange{}
	c.metadata(rec, meta)
	for _, field := range fields {
		if field == "spec.ansible" && bundle == rec.Status.Bundle && sameButCommit(old.Ansible, spec.Ansible) {
			c.say(field+".source", "another commit with the same folder; "+onRecord)
			continue
		}
		c.field(field, rec, old, spec)
	}
	if bundle != rec.Status.Bundle && !slices.Contains(fields, "spec.ansible") {
		c.Playbook = true
		c.say("the playbook's folder", "the playbook runs again")
	}
	return c, nil
}

func (c *ServerChange) say(field, format string, args ...any) {
	c.Effects = append(c.Effects, Effect{Field: field, Text: fmt.Sprintf(format, args...)})
}

func (c *ServerChange) refuse(field, reason, instead string) {
	c.Refused = append(c.Refused, Refusal{Field: field, Reason: reason, Instead: instead})
}

func (c *ServerChange) metadata(rec Record, meta Metadata) {
	for _, field := range MetadataDifferences(rec.Metadata.Metadata, meta) {
		if field == "metadata.nodeName" && meta.NodeName != "" && meta.NodeName != rec.Status.Host {
			c.refuse(field, "is "+meta.NodeName+", and the server stands on "+rec.Status.Host+": servers do not move yet", "delete the server and apply again")
			continue
		}
		c.say(field, onRecord)
	}
}

func (c *ServerChange) field(field string, rec Record, old, spec ServerSpec) {
	name := rec.Metadata.Name
	switch field {
	case "spec.cpu":
		c.Machine, c.Fit = true, true
		c.say(field, "%d → %d; %s", old.CPU, spec.CPU, atOnceOrRestart)
	case "spec.memory":
		c.Machine, c.Fit = true, true
		c.say(field, "%d → %d MiB; %s", old.Memory, spec.Memory, atRestart)
	case "spec.bootVolume":
		c.bootVolume(rec, old.BootVolume, spec.BootVolume)
	case "spec.storage":
		c.storage(rec, old.Storage, spec.Storage)
	case "spec.networkInterface":
		c.nics(old.NetworkInterface, spec.NetworkInterface)
	case "spec.ansible":
		if spec.Ansible == nil {
			c.say(field, "written down; what the playbook did stays")
			return
		}
		c.Playbook = true
		c.say(field, "the playbook runs again")
	case "spec.auth", "spec.cloudInit":
		c.say(field, atRebuild)
	case "spec.autostart", "spec.onFailure", "spec.readiness", "spec.deadline", "spec.dependsOn", "spec.placement":
		c.say(field, onRecord)
	case "spec.mmImage":
		c.refuse(field, fmt.Sprintf("is %s, and the server was built from %s: a boot disk is not changed in place", spec.Image, old.Image),
			fmt.Sprintf("burrow rebuild server %s --image %s", name, spec.Image))
	default:
		c.refuse(field, "is not changed on a server that stands", "undo the edit, or delete the server and apply again")
	}
}

const undoShrink = "undo the edit: disks only grow"

// bootVolume compares boot disks. A size that is left out is whatever the disk has.
func (c *ServerChange) bootVolume(rec Record, old, spec BootVolume) {
	const field = "spec.bootVolume"
	have := sizeOf(rec, "boot")
	switch {
	case old.Type != spec.Type || old.Name != spec.Name:
		c.refuse(field, "asks for another kind of boot disk", "undo the edit, or delete the server and apply again")
	case spec.Size == 0 || spec.Size == have:
		c.say(field, onRecord)
	case spec.Size < have:
		c.refuse(field, fmt.Sprintf("asks for %d GiB, and the disk has %d", spec.Size, have), undoShrink)
	default:
		c.grow(field, "boot", have, spec.Size)
	}
}

func (c *ServerChange) grow(field, disk string, have, want int) {
	c.Grow = append(c.Grow, Growth{Disk: disk, GiB: want})
	c.say(field, "%s grows from %d to %d GiB at once; cloud-init grows the root file system at the next boot, others you grow in the guest", disk, have, want)
}

// storage compares data disks by their names.
func (c *ServerChange) storage(rec Record, old, spec []Storage) {
	said := len(c.Effects) + len(c.Refused)
	for _, was := range old {
		if findStorage(spec, was.Name) != nil {
			continue
		}
		field := "spec.storage " + was.Name
		if was.Spec != nil {
			c.refuse(field, "is gone, and the disk is the server's own: its data would be gone with it",
				"put it back (umount it in the guest if it is not used); it is deleted with the server")
			continue
		}
		c.DropDisks = append(c.DropDisks, was.Name)
		c.say(field, "is detached while the guest is off (with --restart, or when it is stopped). The volume and its data stay")
	}
	for _, want := range spec {
		c.disk(rec, findStorage(old, want.Name), want)
	}
	if len(c.Effects)+len(c.Refused) == said {
		c.say("spec.storage", "another order, which is written down; disks keep their names in the guest")
	}
}

func (c *ServerChange) disk(rec Record, was *Storage, want Storage) {
	field := "spec.storage " + want.Name
	switch {
	case was == nil && want.Spec == nil:
		c.AddDisks = append(c.AddDisks, want)
		c.say(field, "the volume is attached at once")
	case was == nil:
		c.AddDisks = append(c.AddDisks, want)
		c.say(field, "a new disk of %d GiB is attached at once", want.Spec.Size)
	case (was.Spec == nil) != (want.Spec == nil):
		c.refuse(field, "changes between a disk of the server's own and a Volume", "undo the edit, and add a disk of another name")
	case want.Spec == nil || *was.Spec == *want.Spec:
	case was.Spec.Type != want.Spec.Type || !sameButSize(*was.Spec, *want.Spec):
		c.refuse(field, "differs in more than its size", "undo the edit, and add a disk of another name")
	case want.Spec.Size < sizeOf(rec, want.Name):
		c.refuse(field, fmt.Sprintf("asks for %d GiB, and the disk has %d", want.Spec.Size, sizeOf(rec, want.Name)), undoShrink)
	case want.Spec.Size == sizeOf(rec, want.Name):
		c.say(field, onRecord)
	default:
		c.grow(field, want.Name, sizeOf(rec, want.Name), want.Spec.Size)
	}
}

func findStorage(all []Storage, name string) *Storage {
	for i := range all {
		if all[i].Name == name {
			return &all[i]
		}
	}
	return nil
}

func sameButSize(a, b VolumeSpec) bool {
	a.Size = b.Size
	return a == b
}

// sizeOf is what a disk of the server has, in GiB.
func sizeOf(rec Record, disk string) int {
	for _, d := range rec.Status.Disks {
		if d.Name == disk {
			return d.SizeGiB
		}
	}
	return 0
}

// MetadataDifferences names the fields in which two documents' metadata differ.
func MetadataDifferences(have, want Metadata) []string {
	var fields []string
	if have.Comment != want.Comment {
		fields = append(fields, "metadata.comment")
	}
	if !maps.Equal(have.Labels, want.Labels) {
		fields = append(fields, "metadata.labels")
	}
	if have.NodeName != want.NodeName {
		fields = append(fields, "metadata.nodeName")
	}
	return fields
}

// SpecDifferences names the top-level fields in which two specs in normal form differ.
func SpecDifferences(have, want []byte) ([]string, error) {
	if bytes.Equal(have, want) {
		return nil, nil
	}
	var a, b map[string]any
	if err := json.Unmarshal(have, &a); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(want, &b); err != nil {
		return nil, err
	}
	var fields []string
	for key := range a {
		if !reflect.DeepEqual(a[key], b[key]) {
			fields = append(fields, "spec."+key)
		}
	}
	for key := range b {
		if _, both := a[key]; !both {
			fields = append(fields, "spec."+key)
		}
	}
	slices.Sort(fields)
	return fields, nil
}
