package e2e

import (
	"testing"

	"burrow.dev/burrow/test/lab"
)

func TestMain(m *testing.M) { lab.Main(m, lab.OVS, lab.Libvirt, lab.Internet) }
