package volume

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestEveryNameThatIsGivenIsReadBack(t *testing.T) {
	const uid = "1a2b3c4d-0000-4000-8000-000000000000"
	for _, format := range formats {
		for _, server := range []string{"db", "web-2", "a-12345678", "vol-x"} {
			for _, name := range []string{
				bootVolume(server, uid, mainBoot, format), bootVolume(server, uid, otherBoot, format),
				dataVolume(server, uid, "data-1", format), dataVolume(server, uid, "boot", format),
			} {
				got, ok := ParseName(name)
				require.True(t, ok, name)
				require.Equal(t, Named{Volume: name, Owner: "1a2b3c4d", OwnerName: server}, got)
			}
		}
		name := resourceVolume("data-1", uid, format)
		got, ok := ParseName(name)
		require.True(t, ok, name)
		require.Equal(t, Named{Volume: name, Owner: "1a2b3c4d", OwnerName: "data-1", Resource: true}, got)
	}
}

func TestOtherFilesOfAPoolHaveNoSuchName(t *testing.T) {
	for _, name := range []string{
		"img-0123456789abcdef.qcow2", "db-boot.qcow2", "db-1a2b3c4d-boot-copy.qcow2", "db-1a2b3c4d-boot.qcow2.bak", "db-1A2B3C4D-boot.raw",
		"vol-data.qcow2", "data-1a2b3c4d.qcow2", "db-1a2b3c4d-boot.iso", ".db-1a2b3c4d-boot.raw", "",
	} {
		_, ok := ParseName(name)
		require.False(t, ok, name)
	}
}
