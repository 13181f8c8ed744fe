package addrspace

import (
	"encoding/binary"
	"math"
	"strconv"

	"go4.org/netipx"
)

// Count is a number of addresses. An IPv6 subnet may have more than it can say:
// it stops at its largest value, which means that.
type Count uint64

const countless Count = math.MaxUint64

// String gives the number, or says that it is too big for one.
func (c Count) String() string {
	if c == countless {
		return "more than 2^64"
	}
	return strconv.FormatUint(uint64(c), 10)
}

// Less gives c without n; of what is countless, countless is left.
func (c Count) Less(n Count) Count {
	if c == countless {
		return c
	}
	return c - min(c, n)
}

// countOf counts the addresses of ranges that do not overlap.
func countOf(ranges []netipx.IPRange) Count {
	var total Count
	for _, r := range ranges {
		from, to := r.From().As16(), r.To().As16()
		span := Count(binary.BigEndian.Uint64(to[8:]) - binary.BigEndian.Uint64(from[8:]))
		if [8]byte(from[:8]) != [8]byte(to[:8]) || total+span+1 <= total {
			return countless
		}
		total += span + 1
	}
	return total
}

// Hosts is how many addresses of the subnet servers could have, were none reserved.
func (sp *Space) Hosts() Count { return countOf(sp.hosts) }

// ReservedHosts is how many of Hosts are reserved.
func (sp *Space) ReservedHosts() Count { return countOf(sp.reserved) }

// Size is how many addresses may be handed out unasked.
func (sp *Space) Size() Count { return countOf(sp.auto) }
