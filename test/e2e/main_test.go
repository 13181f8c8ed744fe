package e2e

import (
	"os"
	"testing"

	"burrow.dev/burrow/test/lab"
)

// longForm skips what takes too long for every commit.
func longForm(t *testing.T, why string) {
	t.Helper()
	if os.Getenv("BURROW_FAULTS") == "" {
		t.Skip(why + ": make test-faults")
	}
}

func TestMain(m *testing.M) { lab.Main(m, lab.OVS, lab.Libvirt, lab.Internet) }
