package faults

import (
	"cmp"
	"fmt"
	"os/exec"
	"strings"
	"time"
)

// marks of the ends, in the matrix.
var marks = []struct {
	end  ending
	mark string
	says string
}{
	{endsWell, "✔", "the operation ends as if nothing had happened: everything that it should make is there once, and nothing else"},
	{endsFailed, "F", "the resource is Failed, with the reason and the next step; nothing else of it is left"},
	{endsGone, "∅", "nothing of the resource is left, not even a record"},
	{endsBack, "B", "the operation is refused or given up with its reason; what it worked on is as it was before, the record says so, and asking again works"},
	{endsTrue, "T", "the operation is refused with its reason; the record says how things are, and asking again works"},
	{endsLeaving, "L", "the operation has its result, but something of what it replaced could not be removed; its reason names that, the record says how things are, and `burrow delete` removes all"},
	{endsOwing, "O", "the resource is Failed, its message names what could not be removed, and `burrow delete` removes it"},
}

func markOf(o outcome) string {
	if o.err != nil {
		return "✘"
	}
	for _, m := range marks {
		if m.end == o.cell.end {
			return m.mark
		}
	}
	return "?"
}

// matrix is the outcomes as text: for each operation its steps, and for each the faults.
func matrix(all []outcome) string {
	var b strings.Builder
	count := map[string]int{}
	for _, g := range grouped(all) {
		fmt.Fprintf(&b, "%s\n", g.operation)
		for _, step := range g.steps {
			fmt.Fprintf(&b, "  %-28s", step)
			for n := range faults {
				mark := g.marks[step][n]
				if mark == "" {
					mark = "·"
				} else {
					count[mark]++
				}
				fmt.Fprintf(&b, " %s", mark)
			}
			b.WriteString("\n")
		}
	}
	fmt.Fprintf(&b, "faults, left to right: %s\n", strings.Join(faultNames(), ", "))
	for _, m := range marks {
		fmt.Fprintf(&b, "%s %d  ", m.mark, count[m.mark])
	}
	fmt.Fprintf(&b, "✘ %d", count["✘"])
	return b.String()
}

func faultNames() []string {
	var all []string
	for _, f := range faults {
		all = append(all, f.name)
	}
	return all
}

// group is one operation's part of the matrix.
type group struct {
	operation string
	steps     []string
	marks     map[string][]string // by step, then by fault
}

func grouped(all []outcome) []*group {
	var groups []*group
	byName := map[string]*group{}
	// In the table's order, whatever the order of the run.
	played := map[string]string{}
	for _, o := range all { // the last time counts
		played[o.cell.String()] = markOf(o)
	}
	for _, c := range table() {
		g := byName[c.op.name]
		if g == nil {
			g = &group{operation: c.op.name, marks: map[string][]string{}}
			byName[c.op.name] = g
			groups = append(groups, g)
		}
		if g.marks[c.at.step] == nil {
			g.steps = append(g.steps, c.at.step)
			g.marks[c.at.step] = make([]string, len(faults))
		}
		for n, f := range faults {
			if f.name == c.fault.name {
				g.marks[c.at.step][n] = cmp.Or(played[c.String()], notPlayed)
			}
		}
	}
	return groups
}

// notPlayed marks a cell that can happen and was not run.
const notPlayed = "–"

const guaranteesIntro = `# What Burrow guarantees, and how that is tested

An operation ends Running, Held, or Failed with its reason and nothing left behind, whatever
happens in between. This page is that sentence, cell by cell. It is written by the test that
proves it: each cell below that has a mark was run on real parts (Temporal, etcd, libvirt,
Open vSwitch, volumes on a disk), with the fault made at that very step. After each,
everything that an operation can leave a trace in was compared with the world that was
expected: domains, volumes, seeds, ports, flows, namespaces, firewall rules, devices, addresses, reservations,
records, secrets, processes and temporary files. What is there twice is a failure too.

    make guarantees        all of it, and this page (an hour and more on two cores)
    make test              a slice of it, another one with each commit

Applies, sweeps and lost hosts have tests of their own beside the matrix (` + "`" + `make test-faults` + "`" + `). ` + "`" + `burrow configure` + "`" + `
and Playbook documents are not in it: they log in to guests, and the guests of the matrix have no operating
system. Their tests have real guests, and less of the faults.

`

// guarantees is the matrix as a page for users.
func guarantees(all []outcome, seed string) string {
	var b strings.Builder
	b.WriteString(guaranteesIntro)
	good, last := 0, map[string]bool{}
	for _, o := range all { // the last time counts
		last[o.cell.String()] = o.err == nil
	}
	for _, well := range last {
		if well {
			good++
		}
	}
	commit, _ := exec.Command("git", "describe", "--always", "--dirty").Output() // unknown is empty
	fmt.Fprintf(&b, "Run as of commit `%s` (where it took several runs, the last of them), seed `%s`, %s: **%d of %d cells as promised**; the matrix has %d.\n\n## How a cell ends\n\n", strings.TrimSpace(string(commit)), seed, time.Now().UTC().Format(time.DateOnly), good, len(last), len(table()))
	for _, m := range marks {
		fmt.Fprintf(&b, "* **%s** %s\n", m.mark, m.says)
	}
	b.WriteString("* **✘** not as promised: a defect\n* **" + notPlayed + "** not run\n* empty: cannot happen there\n\n## The faults\n\n| | fault | what happens |\n|---|---|---|\n")
	for n, f := range faults {
		fmt.Fprintf(&b, "| %d | %s | %s |\n", n+1, f.name, f.words)
	}
	for _, g := range grouped(all) {
		fmt.Fprintf(&b, "\n## %s%s\n\n| step |", strings.ToUpper(g.operation[:1]), g.operation[1:])
		for n := range faults {
			fmt.Fprintf(&b, " %d |", n+1)
		}
		b.WriteString("\n|---|" + strings.Repeat("---|", len(faults)) + "\n")
		for _, step := range g.steps {
			fmt.Fprintf(&b, "| %s | %s |\n", step, strings.Join(g.marks[step], " | "))
		}
	}
	return b.String()
}
