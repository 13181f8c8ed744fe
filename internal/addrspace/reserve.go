package addrspace

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"go4.org/netipx"

	"burrow.dev/burrow/manifest"
)

// ByManifest stands for who reserved what a network's manifest reserves.
const ByManifest = "manifest"

// Reservation says who reserved addresses, why and since when.
type Reservation struct {
	By      string    `json:"by"`
	Comment string    `json:"comment,omitempty"`
	Since   time.Time `json:"since"`
}

// Reserved is a range of one subnet that is never handed out, asked for or not.
type Reserved struct {
	First netip.Addr `json:"first"`
	Last  netip.Addr `json:"last"`
	Reservation
}

// Range gives the addresses.
func (r Reserved) Range() netipx.IPRange { return netipx.IPRangeFrom(r.First, r.Last) }

func (r Reserved) why() string {
	if r.Comment == "" {
		return "reserved by " + r.By
	}
	return fmt.Sprintf("reserved by %s: %s", r.By, r.Comment)
}

// Hold puts a range of one subnet into a list of reservations; the list that was given
// stays as it is. The same range of the same person again takes the new comment; what
// overlaps any other reservation is a *ReservedError.
func Hold(list []Reserved, r netipx.IPRange, note Reservation) ([]Reserved, error) {
	list = slices.Clone(list)
	for i, have := range list {
		switch {
		case !have.Range().Overlaps(r):
		case have.Range() == r && have.By == note.By:
			list[i].Comment = note.Comment
			return list, nil
		default:
			return nil, &ReservedError{Asked: r, Reserved: have}
		}
	}
	list = append(list, Reserved{First: r.From(), Last: r.To(), Reservation: note})
	sortReserved(list)
	return list, nil
}

// Drop takes a range out of a list of reservations; the list that was given stays as it
// is. Of one that is larger, the rest stays.
func Drop(list []Reserved, r netipx.IPRange) []Reserved {
	var out []Reserved
	for _, have := range list {
		if !have.Range().Overlaps(r) {
			out = append(out, have)
			continue
		}
		if have.First.Less(r.From()) {
			before := have
			before.Last = r.From().Prev()
			out = append(out, before)
		}
		if r.To().Less(have.Last) {
			after := have
			after.First = r.To().Next()
			out = append(out, after)
		}
	}
	sortReserved(out)
	return out
}

func sortReserved(list []Reserved) {
	slices.SortFunc(list, func(a, b Reserved) int { return a.First.Compare(b.First) })
}

// ByManifestIn lists what a subnet's manifest reserves.
func ByManifestIn(s manifest.Subnet) ([]Reserved, error) {
	ranges, err := reservedRanges(s)
	if err != nil {
		return nil, err
	}
	var out []Reserved
	for _, r := range ranges {
		out = append(out, Reserved{First: r.From(), Last: r.To(), Reservation: Reservation{By: ByManifest}})
	}
	sortReserved(out)
	return out, nil
}

// Reservable gives nil when a range may be reserved, or released from that, as far as the
// subnet goes: it is inside, and there is an address in it that servers could have if users
// reserved none. Otherwise a *RefusedError.
func (sp *Space) Reservable(r netipx.IPRange) error {
	if !sp.Prefix.Contains(r.From()) || !sp.Prefix.Contains(r.To()) {
		return &RefusedError{Addr: r.To(), Why: "the range ends outside the subnet " + sp.Prefix.String()}
	}
	var rest netipx.IPSetBuilder
	rest.AddRange(r)
	for _, refused := range sp.refused {
		rest.RemoveSet(refused.ips)
	}
	set, err := rest.IPSet()
	if err != nil {
		return err
	}
	if len(set.Ranges()) == 0 {
		return &RefusedError{Addr: r.From(), Why: sp.Refuses(r.From())}
	}
	return nil
}
