package addresses

import (
	"encoding/hex"
	"net/netip"
	"strings"

	"burrow.dev/burrow/internal/addrspace"
	"burrow.dev/burrow/internal/etcdstate"
)

// hexDigits of an address.
const hexDigits = 32

// hexAddr gives an address as 32 hex digits, IPv4 in its mapped form, so that the order
// of keys is the order of addresses and a key names one address only.
func hexAddr(a netip.Addr) string {
	b := a.As16()
	return hex.EncodeToString(b[:])
}

// parseHexAddr is the inverse of hexAddr.
func parseHexAddr(s string) (netip.Addr, bool) {
	b, err := hex.DecodeString(s)
	if err != nil || len(b) != 16 {
		return netip.Addr{}, false
	}
	return netip.AddrFrom16([16]byte(b)).Unmap(), true
}

// hexBlock is hexAddr of a block's addresses without the last byte.
func hexBlock(b netip.Prefix) string {
	full := hexAddr(b.Addr())
	return full[:len(full)-2]
}

// keys names the keys of one network.
type keys struct {
	store *etcdstate.Store
	uid   string
}

func (k keys) lock() string              { return "ipam/" + k.uid } // below locks/
func (k keys) pool() string              { return k.store.Key("pools", k.uid) }
func (k keys) all() string               { return k.store.Key("ipam", k.uid, "") }
func (k keys) addrs() string             { return k.store.Key("ipam", k.uid, "a", "") }
func (k keys) addr(a netip.Addr) string  { return k.addrs() + hexAddr(a) }
func (k keys) owner(owner string) string { return k.store.Key("ipam", k.uid, "o", owner) }
func (k keys) held() string              { return k.store.Key("ipam", k.uid, "q", "") }
func (k keys) hold(a netip.Addr) string  { return k.held() + hexAddr(a) }
func (k keys) counts() string            { return k.store.Key("ipam", k.uid, "b", "") }
func (k keys) cursors() string           { return k.store.Key("ipam", k.uid, "cursor", "") }
func (k keys) cursor(s netip.Prefix) string {
	return k.cursors() + hexAddr(s.Addr())
}

// count of a block of 256, or of the one block of a smaller subnet, which has neighbours
// among the 256.
func (k keys) count(b netip.Prefix) string {
	if addrspace.WholeBlock(b) {
		return k.counts() + hexBlock(b)
	}
	return k.counts() + hexAddr(b.Addr())
}

// addrOf gives the address that a key ends with; of a count key, the block's first.
func (k keys) addrOf(key string) (netip.Addr, bool) {
	text := key[strings.LastIndexByte(key, '/')+1:]
	if len(text) == hexDigits-2 {
		text += "00"
	}
	return parseHexAddr(text)
}
