package ipam

import (
	"fmt"

	"burrow.dev/burrow/internal/addrspace"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/manifest"
)

const (
	// firstVNI is the first that is chosen: those below are often made from VLAN IDs.
	firstVNI = 4097
	// maxVNI is the largest of 24 bits (RFC 7348).
	maxVNI = 1<<24 - 1
)

// settleVNI gives an overlay network its virtual network identifier: the one it asks for, or
// the smallest that no other network has, from firstVNI on. Like its subnets, it is its own
// because all other networks are compared when it is entered, and free when it is forgotten.
func settleVNI(object string, mode manifest.NetworkMode, asked int, others []addrspace.Entry) (int, error) {
	if mode != manifest.ModeOverlay {
		return 0, nil
	}
	taken := map[int]string{}
	for _, other := range others {
		taken[other.Network.VNI] = other.Name
	}
	if asked != 0 {
		if asked < 1 || asked > maxVNI {
			return 0, errs.NewPermanent(object, "settle", fmt.Errorf("%w: VNI %d", errs.ErrInvalid, asked), fmt.Sprintf("choose 1 to %d, or leave it out", maxVNI))
		}
		if other, ok := taken[asked]; ok {
			return 0, errs.NewPermanent(object, "settle", fmt.Errorf("%w: network/%s has VNI %d", errs.ErrExists, other, asked), "choose another vni, or leave it out")
		}
		return asked, nil
	}
	for vni := firstVNI; vni <= maxVNI; vni++ {
		if _, ok := taken[vni]; !ok {
			return vni, nil
		}
	}
	return 0, errs.NewPermanent(object, "choose a VNI", errs.ErrNoSpace, "delete overlay networks")
}
