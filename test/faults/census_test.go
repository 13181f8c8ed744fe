package faults

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"

	"burrow.dev/burrow/internal/hostnet"
	"burrow.dev/burrow/internal/ovsx"
	"burrow.dev/burrow/manifest"
)

// census lists everything that an operation leaves traces in, one sorted line each:
// domains, volumes and their marks, seeds, consoles, runs, ports, bridges, flows, namespaces, devices,
// addresses of the machine, nft, records, addresses, reservations, references, secrets,
// claims, processes and temporary files. What differs from run to run without meaning
// (OpenFlow numbers, counters) is left out.
func (s *site) census(ctx context.Context) ([]string, error) {
	var all []string
	var failed error
	list := func(kind, command string) {
		out, err := exec.CommandContext(ctx, "sh", "-c", command).CombinedOutput()
		if err != nil && failed == nil {
			failed = fmt.Errorf("%s: %w: %s", kind, err, out)
		}
		for line := range strings.Lines(string(out)) {
			if line = strings.Join(strings.Fields(line), " "); line != "" {
				for _, one := range spread(line) {
					all = append(all, kind+": "+one)
				}
			}
		}
	}
	data := string(s.conf.Folder)
	list("domain", `virsh -q -c qemu:///system list --all | awk '{$1=""; print}'`)
	machines, err := s.machines(ctx)
	if err != nil && failed == nil {
		failed = err
	}
	all = append(all, machines...)
	list("domain file", `cd /etc/libvirt/qemu && ls -1 *.xml 2>/dev/null || true`)
	disks, err := s.disks()
	if err != nil && failed == nil {
		failed = err
	}
	all = append(all, disks...)
	for _, folder := range []string{"disks", "seeds", "consoles", "runs", "blobs"} {
		// Logs of playbooks outlive their servers.
		list(folder, "find "+filepath.Join(data, folder)+" -mindepth 1 -not -path '*/blobs/logs*' 2>/dev/null || true")
	}
	list("temp", "ls -A "+s.temp)
	list("run", "find /run/burrow -type f -o -type l -o -type s 2>/dev/null || true")
	list("bridge", "ovs-vsctl --bare --columns=name list bridge")
	list("port", `ovs-vsctl --format=csv --no-headings --columns=name,tag,trunks list port`)
	list("interface", `ovs-vsctl --format=csv --no-headings --columns=name,external_ids list interface`)
	list("flow", `for b in $(ovs-vsctl list-br); do ovs-ofctl -O OpenFlow14 --no-stats dump-flows "$b" | sed -E "s/in_port=[^, ]+/in_port=#/; s/output:[^, ]+/output:#/g; s/^/$b/"; done`)
	list("namespace", "ip netns list | cut -d' ' -f1")
	list("device", `ip -o link | cut -d: -f2 | cut -d@ -f1`)
	list("address", `ip -o addr | awk '{print $2, $3, $4}'`)
	list("nft", "nft -s list ruleset")
	list("process", `ps -e -o args= | grep -E '^[^ ]*(qemu-system|dnsmasq|ansible|ssh|genisoimage|xorriso|qemu-img)' | cut -c1-120 || true`)
	records, err := s.etcd(ctx)
	if failed == nil {
		failed = err
	}
	all = append(all, records...)
	for i, line := range all {
		all[i] = meaningless.ReplaceAllString(libvirtsMarks.ReplaceAllString(line, ""), "#")
	}
	all = slices.DeleteFunc(all, func(line string) bool {
		return strings.HasPrefix(line, "address: ") && strings.Contains(line, "inet6 #")
	})
	slices.Sort(all)
	return all, failed
}

// spread makes of a rule of nft for several devices one line for each.
func spread(line string) []string {
	sets := nftSet.FindAllStringSubmatch(line, -1)
	if len(sets) == 0 {
		return []string{line}
	}
	var all []string
	last := sets[len(sets)-1]
	for _, element := range strings.Split(last[1], ", ") {
		one := strings.ReplaceAll(line, last[0], element)
		all = append(all, nftSet.ReplaceAllString(one, "#"))
	}
	return all
}

var nftSet = regexp.MustCompile(`\{ ([^{}]*) \}`)

// meaningless are numbers that differ from run to run: the kernel's indexes, libvirt's
// interface ids, link-local addresses, and those of the pair of links that NAT goes through.
var meaningless = regexp.MustCompile(`burrow-ifindex=""\d+""|iface-id=""[^"]+""|fe80::[0-9a-f:/]+|169\.254\.\d+\.\d+(/30)?|[0-9a-f]{12}\.iso`)

// libvirtsMarks are on a port as long as it is the one that libvirt made, and not one that
// was made anew for a NIC that the guest has kept.
var libvirtsMarks = regexp.MustCompile(`, iface-status=active|, vm-id=""[^"]+""`)

// etcd lists the keys, with what matters of a record. Quarantined addresses and leases
// come and go by themselves; cursors and block counts are bookkeeping of their network.
func (s *site) etcd(ctx context.Context) ([]string, error) {
	prefix := s.store.Key()
	res, err := s.store.Client().Get(ctx, prefix, clientv3.WithPrefix())
	if err != nil {
		return nil, err
	}
	var all []string
	for _, kv := range res.Kvs {
		key := strings.TrimPrefix(string(kv.Key), prefix)
		if transientKey.MatchString(key) {
			continue
		}
		line := "etcd: " + key
		var rec manifest.Record
		if json.Unmarshal(kv.Value, &rec) == nil && rec.Kind != "" && rec.Kind != "Host" {
			line += fmt.Sprintf(" phase=%s operation=%v host=%s disks=%s ports=%d", rec.Status.Phase, rec.Status.Operation != nil, rec.Status.Host, disksOf(rec), len(rec.Status.Ports))
			for _, c := range rec.Status.Conditions {
				if c.Type == manifest.ConditionRestart {
					line += " " + c.Type + "=" + c.Reason
				}
			}
			if v := rec.Status.Volume; v != nil {
				line += " attached=" + v.AttachedTo
			}
		}
		all = append(all, line)
	}
	return all, nil
}

var transientKey = regexp.MustCompile(`^(locks|alive|elections?|keyholders|deleted|sweep)/|/(q|cursor|b)/`)

// difference gives the lines that are in a and not in b.
func difference(a, b []string) []string {
	in := map[string]int{}
	for _, line := range b {
		in[line]++
	}
	var only []string
	for _, line := range a {
		if in[line] == 0 {
			only = append(only, line)
		} else {
			in[line]--
		}
	}
	return only
}

// identity are the names under which a resource is found in a census, and what each is
// called when two resources are compared.
type identity struct{ from, to []string }

func (i *identity) add(from, to string) {
	if from != "" {
		i.from, i.to = append(i.from, from), append(i.to, to)
	}
}

// addServer adds the names of a server's traces.
func (i *identity) addServer(rec manifest.Record, nics []manifest.NIC) {
	uid := rec.Metadata.UID
	if uid == "" {
		return
	}
	i.add(uid, "UID")
	i.add(manifest.DomainUUID(uid), "UUID")
	i.add(uid[:8], "UID8")
	for _, nic := range nics {
		i.add(manifest.DeviceName(uid, nic.Name), "DEV-"+nic.Name)
		i.add(manifest.MAC(uid, nic.Name), "MAC-"+nic.Name)
		i.add(fmt.Sprintf("%#x", ovsx.Cookie(uid, nic.Name)), "COOKIE-"+nic.Name)
	}
	for _, p := range rec.Status.Ports {
		for n, text := range p.Addresses {
			prefix, err := netip.ParsePrefix(text)
			if err != nil {
				continue
			}
			i.add(prefix.Addr().String(), fmt.Sprintf("ADDRESS-%s-%d", p.Name, n))
			i.add(fmt.Sprintf("%x", prefix.Addr().As16()), fmt.Sprintf("ADDRESS-%s-%d", p.Name, n))
		}
	}
}

// addNetwork adds the names of a network's traces.
func (i *identity) addNetwork(rec manifest.Record, to string) {
	i.add(rec.Metadata.UID, to+"UID")
	if n := rec.Status.Network; n != nil {
		for _, subnet := range n.Subnets {
			if gateway, err := netip.ParseAddr(subnet.Gateway); err == nil {
				i.add(fmt.Sprintf("%x", gateway.As16()), to+"GATEWAY")
			}
		}
	}
	i.add(strings.TrimPrefix(hostnet.GatewayDevice(rec.Metadata.UID), "bwg"), to+"DEV")
	i.add(rec.Metadata.Name, to)
}

// of gives the lines of a census that name the resource, in a form that is the same
// for every one of its kind.
func (i identity) of(census []string) []string {
	replace := make([]string, 0, 2*len(i.from))
	for n, from := range i.from {
		replace = append(replace, from, "<"+i.to[n]+">")
	}
	r := strings.NewReplacer(replace...)
	var mine []string
	for _, line := range census {
		if changed := r.Replace(line); changed != line {
			mine = append(mine, changed)
		}
	}
	slices.Sort(mine)
	return mine
}
