package manifest

import (
	"errors"
	"fmt"
	"strings"
)

// ErrCycle is that documents wait for each other in a ring.
var ErrCycle = errors.New("dependsOn goes round in a circle")

// Order gives levels of indexes into docs: every document comes after all that it needs
// (networks, volumes and images it names, the servers a Playbook is for, and its dependsOn), and those of one level may be
// built side by side. Within a level the order is that of docs. References to what is not
// in docs count as met. The error wraps ErrCycle and names the ring.
func Order(docs []*Document) ([][]int, error) {
	needs := needsOf(docs)
	level := make([]int, len(docs))
	if ring := rank(needs, level); ring != nil {
		return nil, fmt.Errorf("%w: %s", ErrCycle, ringText(docs, ring))
	}
	var levels [][]int
	for i, n := range level {
		for len(levels) <= n {
			levels = append(levels, nil)
		}
		levels[n] = append(levels[n], i)
	}
	return levels, nil
}

// needsOf gives, for each document, the indexes of those that it needs.
func needsOf(docs []*Document) [][]int {
	index := map[string]int{}
	for i, doc := range docs {
		if _, twice := index[doc.Ref()]; !twice {
			index[doc.Ref()] = i
		}
	}
	needs := make([][]int, len(docs))
	for i, doc := range docs {
		for _, ref := range doc.References() {
			if j, ok := index[ref]; ok {
				needs[i] = append(needs[i], j)
			}
		}
		for j, server := range docs {
			if server.Server != nil && doc.selects(server) {
				needs[i] = append(needs[i], j)
			}
		}
	}
	return needs
}

// selects reports whether a Playbook finds a server by its labels.
func (d *Document) selects(server *Document) bool {
	return d.Playbook != nil && Targets{Selector: d.Playbook.Targets.Selector}.Matches("", server.Metadata.Labels)
}

// References are what a document needs to be there first, as "network/db-net".
func (d *Document) References() []string {
	var refs []string
	switch {
	case d.Server != nil:
		refs = append(refs, Ref(KindImage, d.Server.Image))
		if d.Server.BootVolume.Name != "" {
			refs = append(refs, Ref(KindVolume, d.Server.BootVolume.Name))
		}
		for _, s := range d.Server.Storage {
			refs = append(refs, Ref(KindVolume, s.Name))
		}
		for _, nic := range d.Server.NetworkInterface {
			refs = append(refs, Ref(KindNetwork, nic.Network))
		}
		refs = append(refs, d.Server.DependsOn...)
	case d.Playbook != nil:
		for _, name := range d.Playbook.Targets.Servers {
			refs = append(refs, Ref(KindServer, name))
		}
		refs = append(refs, d.Playbook.DependsOn...)
	case d.Volume != nil && d.Volume.Image != "":
		refs = append(refs, Ref(KindImage, d.Volume.Image))
	}
	return refs
}

// rank fills level (1 + the highest level needed) by depth-first search, without
// recursion, since a chain may be as long as the apply. A ring is given by its members.
func rank(needs [][]int, level []int) []int {
	const unseen, open, done = 0, 1, 2
	state := make([]int, len(needs))
	for root := range needs {
		if state[root] != unseen {
			continue
		}
		stack := []int{root}
		next := map[int]int{}
		state[root] = open
		for len(stack) > 0 {
			top := stack[len(stack)-1]
			if next[top] < len(needs[top]) {
				need := needs[top][next[top]]
				next[top]++
				switch state[need] {
				case open:
					return ringFrom(stack, need)
				case unseen:
					state[need] = open
					stack = append(stack, need)
				}
				continue
			}
			for _, need := range needs[top] {
				level[top] = max(level[top], level[need]+1)
			}
			state[top] = done
			stack = stack[:len(stack)-1]
		}
	}
	return nil
}

func ringFrom(stack []int, start int) []int {
	for i, n := range stack {
		if n == start {
			return append([]int{}, stack[i:]...)
		}
	}
	return []int{start}
}

func ringText(docs []*Document, ring []int) string {
	words := make([]string, 0, len(ring)+1)
	for _, i := range ring {
		words = append(words, docs[i].Ref())
	}
	return strings.Join(append(words, words[0]), " needs ")
}

// cycles reports one ring, at the dependsOn of the member where it was found.
func (v *validator) cycles() {
	docs := v.set.Documents
	ring := rank(needsOf(docs), make([]int, len(docs)))
	if ring != nil {
		v.complain(docs[ring[0]], "spec.dependsOn", "goes round in a circle: "+ringText(docs, ring), "remove one of these dependencies")
	}
}

// attachments: a volume is attached to one server at a time.
func (v *validator) attachments() {
	holder := map[string]string{}
	for _, record := range v.known.Each(KindVolume) {
		if record.Status.Volume != nil && record.Status.Volume.AttachedTo != "" {
			holder[record.Metadata.Name] = record.Status.Volume.AttachedTo
		}
	}
	attach := func(doc *Document, path, volume string) {
		if !v.exists(KindVolume, volume) {
			return // made for this server, under its uid
		}
		if other, ok := holder[volume]; ok && other != doc.Ref() {
			v.complain(doc, path, fmt.Sprintf("volume %s is attached to %s", quote(volume), other), "attach it to one server only")
			return
		}
		holder[volume] = doc.Ref()
	}
	for _, doc := range v.set.Documents {
		if doc.Server == nil {
			continue
		}
		if name := doc.Server.BootVolume.Name; name != "" {
			attach(doc, "spec.bootVolume.metadata.name", name)
		}
		for i, s := range doc.Server.Storage {
			attach(doc, fmt.Sprintf("spec.storage[%d].metadata.name", i), s.Name)
		}
	}
}
