package faults

import (
	"cmp"
	"flag"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"burrow.dev/burrow/internal/devstacktest"
)

var (
	cellsFlag      = flag.String("cells", "", "run the cells whose name matches this `REGEXP`")
	widthFlag      = flag.Int("width", 8, "how many cells run side by side")
	seedFlag       = flag.String("seed", "", "of the slice and of random faults; default: the commit")
	budgetFlag     = flag.Duration("budget", 0, "begin no more cells after this `TIME`; default: no limit, or that of a slice")
	resultsFlag    = flag.String("results", "", "note what went well in `FILE`, and leave it out the next time")
	guaranteesFlag = flag.String("guarantees", "", "write the matrix for users into `FILE`")
)

// seed is the one asked for, else the commit.
func seed(t testing.TB) string {
	if *seedFlag != "" {
		return *seedFlag
	}
	out, err := exec.Command("git", "rev-parse", "--short=12", "HEAD").Output()
	if err != nil {
		t.Logf("no commit: %v", err)
		return "none"
	}
	return strings.TrimSpace(string(out))
}

// full says that everything is to be run, however long it takes; else a slice is.
func full() bool { return os.Getenv("BURROW_FAULTS") != "" }

// longForm skips what only BURROW_FAULTS=1 runs.
func longForm(t *testing.T) {
	t.Helper()
	if !full() {
		t.Skip("takes long: BURROW_FAULTS=1")
	}
}

const (
	// sliceTime is when a slice starts no more cells: all of `make test` waits for it.
	sliceTime = 2 * time.Minute
	// sliceMost bounds a slice on a fast machine.
	sliceMost = 64
)

// TestEveryOperationEndsAsPromisedWhateverHappens runs the matrix, or the slice of it that
// the commit chooses.
func TestEveryOperationEndsAsPromisedWhateverHappens(t *testing.T) {
	if testing.Short() {
		t.Skip("kills things for minutes")
	}
	chosen, budget := table(), time.Duration(0)
	switch {
	case *cellsFlag != "":
		pattern := regexp.MustCompile(*cellsFlag)
		chosen = slices.DeleteFunc(chosen, func(c cell) bool { return !pattern.MatchString(c.String()) })
	case !full():
		chosen, budget = slice(chosen, seed(t)), sliceTime
	}
	if *budgetFlag > 0 {
		budget = *budgetFlag
	}
	all, open, err := recall(*resultsFlag, chosen)
	require.NoError(t, err)
	t.Logf("seed %s: %d of %d cells, %d of them still to be run", seed(t), len(chosen), len(table()), len(open))
	began := time.Now()
	inTime := func() bool { return budget == 0 || time.Since(began) < budget }
	ordinary, onCluster := apart(open)
	all = append(all, playAll(t, "one etcd", ordinary, inTime, newSite)...)
	all = append(all, playAll(t, "three members of etcd", onCluster, inTime, func(t testing.TB) *site {
		return newSiteOn(t, devstacktest.StartEtcdCluster(t, 3))
	})...)
	t.Logf("%d cells in %s and before\n%s", len(all), time.Since(began).Round(time.Second), matrix(all))
	if *guaranteesFlag != "" {
		require.NoError(t, writeFile(*guaranteesFlag, guarantees(all, seed(t))))
	}
}

// apart takes the cells apart that need a cluster of etcd.
func apart(cells []cell) (ordinary, onCluster []cell) {
	for _, c := range cells {
		if c.fault.cluster {
			onCluster = append(onCluster, c)
		} else {
			ordinary = append(ordinary, c)
		}
	}
	return ordinary, onCluster
}

// playAll plays cells on an installation of their own, as long as there is time.
func playAll(t *testing.T, name string, cells []cell, inTime func() bool, on func(testing.TB) *site) (all []outcome) {
	if len(cells) == 0 || !inTime() {
		return nil
	}
	t.Run(name, func(t *testing.T) {
		f := newField(on(t), *widthFlag)
		for _, batch := range batches(cells, *widthFlag) {
			if !inTime() {
				t.Logf("time is up: %d of %d cells are for another run", len(cells)-len(all), len(cells))
				return
			}
			out := f.playAndReport(batch)
			require.NoError(t, remember(*resultsFlag, out))
			all = append(all, out...)
		}
	})
	return all
}

// slice is the part of the matrix that a seed chooses: its cells in an order of its own.
// Disasters, which hit the whole installation and wait for its repairs, are for the long form.
func slice(all []cell, seed string) []cell {
	all = slices.DeleteFunc(all, func(c cell) bool { return c.fault.shared && c.fault.act != nil })
	slices.SortFunc(all, func(a, b cell) int { return cmp.Compare(rank(seed, a), rank(seed, b)) })
	return all[:sliceMost]
}

// playAndReport plays cells and says at once what went wrong.
func (f *field) playAndReport(cells []cell) []outcome {
	f.t.Helper()
	began := time.Now()
	out := f.play(cells)
	for _, o := range out {
		if o.err != nil {
			f.t.Errorf("%s: %v", o.cell, o.err)
		}
	}
	f.t.Logf("%d cells in %s: %s", len(out), time.Since(began).Round(time.Millisecond), names(cells))
	return out
}

func names(cells []cell) string {
	var all []string
	for _, c := range cells {
		all = append(all, c.String())
	}
	return strings.Join(all, "; ")
}

// batches puts cells side by side: those whose fault hits everybody with the same fault, so
// that a killed worker hits cells that expect it; the others with any.
func batches(cells []cell, width int) [][]cell {
	groups := map[string][]cell{}
	const others = "others"
	order := []string{others} // the quick ones first
	for _, c := range cells {
		group := others
		if c.fault.shared {
			group = c.fault.name
		}
		if len(groups[group]) == 0 && group != others {
			order = append(order, group)
		}
		groups[group] = append(groups[group], c)
	}
	var all [][]cell
	for _, name := range order {
		group, beside := groups[name], width
		if len(group) > 0 && group[0].fault.alone {
			beside = 1
		}
		all = append(all, slices.Collect(slices.Chunk(group, beside))...)
	}
	return all
}
