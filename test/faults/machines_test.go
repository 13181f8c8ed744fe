package faults

import (
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"libvirt.org/go/libvirtxml"

	"burrow.dev/burrow/manifest"
)

// machines says what each domain is made of, now and at its next start.
func (s *site) machines(ctx context.Context) ([]string, error) {
	names, err := exec.CommandContext(ctx, "virsh", "-q", "-c", "qemu:///system", "list", "--all", "--name").Output()
	if err != nil {
		return nil, fmt.Errorf("list domains: %w", err)
	}
	var dump strings.Builder
	for _, name := range strings.Fields(string(names)) {
		fmt.Fprintf(&dump, "dumpxml %s; dumpxml --inactive %s; ", name, name)
	}
	if dump.Len() == 0 {
		return nil, nil
	}
	out, err := exec.CommandContext(ctx, "virsh", "-q", "-c", "qemu:///system", dump.String()).Output()
	if err != nil {
		return nil, fmt.Errorf("describe domains: %w", err) // one is gone meanwhile: the next census
	}
	var all []string
	for text := range strings.SplitSeq(string(out), "</domain>") {
		if strings.TrimSpace(text) == "" {
			continue
		}
		var def libvirtxml.Domain
		if err := def.Unmarshal(text + "</domain>"); err != nil {
			return nil, fmt.Errorf("describe domains: %w", err)
		}
		all = append(all, "machine: "+machine(def))
	}
	return all, nil
}

// machine is what a domain is made of, as one line.
func machine(def libvirtxml.Domain) string {
	b := []string{def.Name}
	if def.VCPU != nil {
		// Value is how many could be plugged in; without Current, all of them are.
		b = append(b, fmt.Sprintf("cpu=%d", cmp.Or(def.VCPU.Current, def.VCPU.Value)))
	}
	if def.Memory != nil {
		b = append(b, fmt.Sprintf("memory=%d%s", def.Memory.Value, def.Memory.Unit))
	}
	if def.Devices != nil {
		for _, d := range def.Devices.Disks {
			if d.Target != nil && d.Source != nil && d.Source.File != nil {
				b = append(b, d.Target.Dev+"="+filepath.Base(d.Source.File.File))
			}
		}
		b = append(b, fmt.Sprintf("nics=%d", len(def.Devices.Interfaces)))
	}
	return strings.Join(b, " ")
}

// disks lists the pool's files, each with its size for a guest.
func (s *site) disks() ([]string, error) {
	entries, err := os.ReadDir(s.conf.Worker.PoolDir())
	var all []string
	for _, e := range entries {
		size, gone := virtualSize(filepath.Join(s.conf.Worker.PoolDir(), e.Name()))
		if errors.Is(gone, fs.ErrNotExist) {
			continue
		}
		err = errors.Join(err, gone)
		all = append(all, "pool: "+e.Name()+size)
	}
	return all, err
}

// virtualSize is that of a qcow2 file, from its header; "" for any other.
func virtualSize(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	header := make([]byte, 32)
	if _, err := io.ReadFull(f, header); err != nil || string(header[:4]) != "QFI\xfb" {
		return "", nil // too short, or something else
	}
	return fmt.Sprintf(" %dMiB", binary.BigEndian.Uint64(header[24:])>>20), nil
}

// disksOf says which disks a record has, and of a server how it is declared.
func disksOf(rec manifest.Record) string {
	var all []string
	for _, d := range rec.Status.Disks {
		all = append(all, fmt.Sprintf("%s=%s:%dGiB", d.Target, d.Volume, d.SizeGiB))
	}
	var spec manifest.ServerSpec
	if rec.Kind == manifest.KindServer && json.Unmarshal(rec.Spec, &spec) == nil {
		all = append(all, fmt.Sprintf("cpu=%d,memory=%d,storage=%d", spec.CPU, spec.Memory, len(spec.Storage)))
	}
	return strings.Join(all, ",")
}

// asLibvirtHasIt compares what a server's record says it is made of with its domain and
// its disks. A domain that is off is defined anew at its next start, whatever it says; what
// one that runs has and should not have, the record says in a condition.
func asLibvirtHasIt(rec manifest.Record, census []string) error {
	var spec manifest.ServerSpec
	if err := json.Unmarshal(rec.Spec, &spec); err != nil {
		return err
	}
	want := fmt.Sprintf("machine: %s cpu=%d memory=%dKiB", rec.Metadata.Name, spec.CPU, spec.Memory<<10)
	var failed error
	for _, d := range rec.Status.Disks {
		want += " " + d.Target + "=" + d.Volume
		if line := fmt.Sprintf("pool: %s %dMiB", d.Volume, d.SizeGiB<<10); !slices.Contains(census, line) {
			failed = errors.Join(failed, fmt.Errorf("its record says %q, which is not so", line))
		}
	}
	restart := slices.ContainsFunc(rec.Status.Conditions, func(c manifest.Condition) bool { return c.Type == manifest.ConditionRestart && c.Status })
	if rec.Status.Phase != manifest.PhaseRunning || restart {
		return failed
	}
	nics := fmt.Sprintf(" nics=%d", len(rec.Status.Ports))
	for _, line := range census {
		if strings.HasPrefix(line, "machine: "+rec.Metadata.Name+" ") && (!strings.HasPrefix(line, want+" ") || !strings.HasSuffix(line, nics)) {
			failed = errors.Join(failed, fmt.Errorf("its record says %q and%s, libvirt says %q", want, nics, line))
		}
	}
	return failed
}
