package faults

import (
	"flag"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var randomFlag = flag.Int("random", 0, "how many provisions with random faults; default: 500 with BURROW_FAULTS=1, else none")

// TestProvisionsWithRandomFaultsLeaveNothing builds servers with faults that a seed
// chooses, side by side and mixed.
func TestProvisionsWithRandomFaultsLeaveNothing(t *testing.T) {
	n := *randomFlag
	if n == 0 {
		longForm(t)
		n = 500
	}
	seed := seed(t)
	if *seedFlag == "" { // another one with every run
		seed = fmt.Sprintf("%s-%d-%d", seed, time.Now().Unix(), os.Getpid())
	}
	t.Logf("%d provisions, seed %s (again: -seed %s -random %d)", n, seed, seed, n)
	h := fnv.New64a()
	_, _ = h.Write([]byte(seed))
	draw := rand.New(rand.NewPCG(h.Sum64(), 0))
	all := slices.DeleteFunc(table(), func(c cell) bool { return c.op.name != "provision a server" || c.fault.alone || c.fault.cluster })
	f := newField(newSite(t), *widthFlag)
	began, failed := time.Now(), 0
	for done := 0; done < n; done += *widthFlag {
		var batch []cell
		for range min(*widthFlag, n-done) {
			batch = append(batch, all[draw.IntN(len(all))])
		}
		for _, o := range f.playAndReport(batch) {
			if o.err != nil {
				failed++
			}
		}
	}
	t.Logf("seed %s: %d provisions in %s, %d not as promised", seed, n, time.Since(began).Round(time.Second), failed)
	require.Zero(t, failed)
}
