package volume

import (
	"fmt"

	"github.com/google/uuid"

	"burrow.dev/burrow/internal/errs"
)

// ownerLength is how much of the owner's uid stands in a volume's name.
const ownerLength = 8

// formats are the kinds of volume that a directory pool holds; a delete looks for each.
var formats = []string{"qcow2", "raw"}

// A server's boot volume has one of two names: a rebuild makes the new one beside the old.
const (
	mainBoot  = "boot"
	otherBoot = "boot2"
)

// bootVolume names a server's boot volume.
func bootVolume(server, uid, boot, format string) string {
	return fmt.Sprintf("%s-%s-%s.%s", server, uid[:ownerLength], boot, format)
}

// bootVolumes names it in every format.
func bootVolumes(server, uid string, boots ...string) []string {
	var names []string
	for _, boot := range boots {
		for _, format := range formats {
			names = append(names, bootVolume(server, uid, boot, format))
		}
	}
	return names
}

// dataVolume names a data volume that a server owns. "data" stands between, so that a
// disk called boot is not the boot volume.
func dataVolume(server, uid, disk, format string) string {
	return fmt.Sprintf("%s-%s-data-%s.%s", server, uid[:ownerLength], disk, format)
}

// resourceVolume names the storage of a Volume resource.
func resourceVolume(name, uid, format string) string {
	return fmt.Sprintf("vol-%s-%s.%s", name, uid[:ownerLength], format)
}

// checkUID refuses what is not a uid: names are cut from it.
func checkUID(object, uid string) error {
	if _, err := uuid.Parse(uid); err != nil {
		return errs.NewPermanent(object, "use uid", errs.Reason("%w: %q is not a UUID", errs.ErrInvalid, uid), "")
	}
	return nil
}

// checkFormat gives the libvirt format of a declared type.
func checkFormat(object, kind string) (string, error) {
	switch kind {
	case "", "qcow2":
		return "qcow2", nil
	case "raw":
		return "raw", nil
	}
	return "", errs.NewPermanent(object, "choose format", errs.Reason("%w: type %s is not supported yet", errs.ErrInvalid, kind), "use qcow2 or raw")
}
