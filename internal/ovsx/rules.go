package ovsx

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
)

// Rules say what a guest may send from one port. They are kept beside the port, under
// [KeyRules].
type Rules struct {
	// MAC is the guest's: colons, lower case.
	MAC string `json:"mac"`
	// Addresses are those it may use; the link-local one of its MAC comes by itself.
	Addresses []netip.Addr `json:"addresses,omitempty"`
	// DHCP4 lets it ask for a lease before it has an address.
	DHCP4 bool `json:"dhcp4,omitempty"`
	// Security false: it may send anything.
	Security bool `json:"security"`
	// RateMbps limits what it sends, in megabits a second; 0 is no limit.
	RateMbps int `json:"rateMbps,omitempty"`
}

// String gives the form in which rules are kept.
func (r Rules) String() string {
	b, err := json.Marshal(r)
	if err != nil {
		return "" // no field can fail to encode
	}
	return string(b)
}

// ParseRules reads what [Rules.String] wrote.
func ParseRules(text string) (Rules, error) {
	var r Rules
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		return r, fmt.Errorf("read rules of a port: %w", err)
	}
	_, err := net.ParseMAC(r.MAC)
	return r, err
}

// Cookie gives the flow cookie of an owner's port: the same for the same uid and NIC,
// never that of the base flows.
func Cookie(uid, nic string) uint64 {
	sum := sha256.Sum256([]byte(uid + "/" + nic))
	return binary.BigEndian.Uint64(sum[:8]) | guestBit
}

const (
	// guestBit is set in every guest's cookie and in none of the base flows'.
	guestBit = uint64(1) << 63
	// baseCookie marks the flows that a bridge has before any guest: "burrow" in hex.
	baseCookie = uint64(0x627572726f77)
)

// linkLocal gives the address that a guest derives from its MAC (RFC 4291, appendix A).
func linkLocal(mac net.HardwareAddr) netip.Addr {
	a := [16]byte{0: 0xfe, 1: 0x80, 8: mac[0] ^ 2, 9: mac[1], 10: mac[2], 11: 0xff, 12: 0xfe, 13: mac[3], 14: mac[4], 15: mac[5]}
	return netip.AddrFrom16(a)
}
