package domain

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"burrow.dev/burrow/activities"
	"burrow.dev/burrow/manifest"
)

var update = flag.Bool("update", false, "write the golden files")

const exampleUID = "0b6c2a34-7d8e-4f00-9a11-2b3c4d5e6f70"

func example() StartIn {
	return StartIn{
		Server: activities.Server{Name: "db", UID: exampleUID}, CPU: 4, Memory: 4096, Firmware: "bios",
		Seed: "/var/lib/burrow/seeds/" + exampleUID + "-0123456789ab.iso",
		Disks: []manifest.Disk{
			{
				Name: "boot", Target: "vda", Path: "/var/lib/burrow/pool/db-0b6c2a34-boot.qcow2", Format: "qcow2", Serial: "boot",
				Backing: []manifest.Backing{{Path: "/var/lib/burrow/pool/img-1.qcow2", Format: "qcow2"}, {Path: "/var/lib/burrow/pool/img-0.raw", Format: "raw"}},
			},
			{Name: "data-1", Target: "vdb", Path: "/var/lib/burrow/pool/vol-data-1-11111111.raw", Format: "raw", Serial: "data-1"},
		},
		Ports: []manifest.Port{
			{Name: "host-bridge-0", Network: "host-bridge", MAC: "52:54:00:00:00:01", Device: "bw0123456789", Bridge: "br-kernel", MTU: 1500},
			{Name: "db-net-0", Index: 1, Network: "db-net", MAC: "52:54:00:00:00:02", Device: "bwabcdef0123", Bridge: "br-user", MTU: 1400, VLANs: []int{30}},
			{Name: "trunk", Index: 2, Network: "db-net", MAC: "52:54:00:00:00:03", Device: "bwfedcba9876", Bridge: "br-kernel", MTU: 1500, VLANs: []int{10, 20}, NativeVLAN: 20},
		},
	}
}

func TestDefinitionsAreTheGoldenOnes(t *testing.T) {
	for _, accelerator := range []string{"kvm", "tcg"} {
		t.Run(accelerator, func(t *testing.T) {
			def, err := definition(example(), environment{accelerator, "/var/lib/burrow/consoles", map[string]bool{"br-user": true}})
			require.NoError(t, err)
			got, err := def.Marshal()
			require.NoError(t, err)
			path := filepath.Join("testdata", accelerator+".xml")
			if *update {
				require.NoError(t, os.MkdirAll("testdata", 0o755))
				require.NoError(t, os.WriteFile(path, []byte(got+"\n"), 0o644))
			}
			want, err := os.ReadFile(path)
			require.NoError(t, err)
			require.Equal(t, string(want), got+"\n")
		})
	}
}

func TestANICKeepsItsInterfaceID(t *testing.T) {
	require.Equal(t, InterfaceID(exampleUID, "db-net-0"), InterfaceID(exampleUID, "db-net-0"))
	require.NotEqual(t, InterfaceID(exampleUID, "db-net-0"), InterfaceID(exampleUID, "db-net-1"))
}

func TestANativeVLANOutsideTheListJoinsTheTrunk(t *testing.T) {
	v := vlans(manifest.Port{VLANs: []int{10, 20}, NativeVLAN: 5})
	require.Equal(t, "yes", v.Trunk)
	require.EqualValues(t, 5, v.Tags[0].ID)
	require.Equal(t, "untagged", v.Tags[0].NativeMode)
	require.Nil(t, vlans(manifest.Port{}))
}
