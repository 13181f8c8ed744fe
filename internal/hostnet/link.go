package hostnet

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"unsafe"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"burrow.dev/burrow/internal/errs"
)

// Names of the devices inside a namespace.
const (
	gatewayLink = "gateway"
	uplinkLink  = "uplink"
)

// veth is a pair that joins the host and a namespace.
type veth struct {
	outer, inner string
	innerMAC     net.HardwareAddr
	mtu          int
}

// namespaceLinks works on the devices of one namespace.
type namespaceLinks struct {
	*netlink.Handle
	file netns.NsHandle
}

func openLinks(namespace string) (*namespaceLinks, error) {
	file, err := netns.GetFromPath(namespacePath(namespace))
	if err != nil {
		return nil, fmt.Errorf("namespace %s: %w", namespace, err)
	}
	handle, err := netlink.NewHandleAt(file, unix.NETLINK_ROUTE)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("namespace %s: %w", namespace, err), file.Close())
	}
	return &namespaceLinks{Handle: handle, file: file}, nil
}

func (l *namespaceLinks) close() {
	l.Handle.Close()
	_ = l.file.Close()
}

// up brings one of the namespace's devices up.
func (l *namespaceLinks) up(name string) error {
	link, err := l.LinkByName(name)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return l.LinkSetUp(link)
}

// ensureVeth makes the pair, or repairs what is there: half a pair is made anew.
// The outer device must be ours by its mark, or we must have said before (owned) that
// we would make it.
func (l *namespaceLinks) ensureVeth(v veth, mark string, owned bool) error {
	outer, err := netlink.LinkByName(v.outer)
	absent := isLinkNotFound(err)
	if err != nil && !absent {
		return err
	}
	if !absent && outer.Attrs().Alias != mark && !owned {
		return fmt.Errorf("device %s: %w", v.outer, errs.ErrNotManaged)
	}
	inner, innerErr := l.LinkByName(v.inner)
	if !absent && (isLinkNotFound(innerErr) || (innerErr == nil && outer.Attrs().ParentIndex != inner.Attrs().Index)) {
		if err := netlink.LinkDel(outer); err != nil {
			return err
		}
		absent = true
	}
	if absent {
		if innerErr == nil {
			if err := l.LinkDel(inner); err != nil {
				return err
			}
		}
		if err := l.addVeth(v); err != nil {
			return err
		}
	}
	return l.setVeth(v, mark)
}

func (l *namespaceLinks) addVeth(v veth) error {
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.MTU = v.outer, v.mtu
	pair := &netlink.Veth{LinkAttrs: attrs, PeerName: v.inner, PeerNamespace: netlink.NsFd(int(l.file)), PeerHardwareAddr: v.innerMAC, PeerMTU: uint32(v.mtu)}
	if err := netlink.LinkAdd(pair); err != nil {
		return fmt.Errorf("make %s: %w", v.outer, err)
	}
	return nil
}

// setVeth gives both ends their MTU, the outer its mark and no IPv6 of the host's, and
// brings them up.
func (l *namespaceLinks) setVeth(v veth, mark string) error {
	outer, err := netlink.LinkByName(v.outer)
	if err != nil {
		return err
	}
	inner, err := l.LinkByName(v.inner)
	if err != nil {
		return err
	}
	steps := []error{disableIPv6(v.outer)}
	if outer.Attrs().Alias != mark {
		steps = append(steps, netlink.LinkSetAlias(outer, mark))
	}
	if outer.Attrs().MTU != v.mtu {
		steps = append(steps, netlink.LinkSetMTU(outer, v.mtu))
	}
	if inner.Attrs().MTU != v.mtu {
		steps = append(steps, l.LinkSetMTU(inner, v.mtu))
	}
	if inner.Attrs().HardwareAddr.String() != v.innerMAC.String() {
		steps = append(steps, l.LinkSetHardwareAddr(inner, v.innerMAC))
	}
	steps = append(steps, netlink.LinkSetUp(outer), l.LinkSetUp(inner))
	return errors.Join(steps...)
}

// deleteVeth deletes the pair by its outer end; none is success.
func deleteVeth(outer string) error {
	link, err := netlink.LinkByName(outer)
	if isLinkNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	return netlink.LinkDel(link)
}

func isLinkNotFound(err error) bool {
	var notFound netlink.LinkNotFoundError
	return errors.As(err, &notFound)
}

// setAddresses makes want the device's only addresses, link-local ones apart.
func setAddresses(h *netlink.Handle, device string, want []netip.Prefix) error {
	link, err := h.LinkByName(device)
	if err != nil {
		return fmt.Errorf("%s: %w", device, err)
	}
	have, err := h.AddrList(link, netlink.FAMILY_ALL)
	if err != nil {
		return err
	}
	missing := map[netip.Prefix]bool{}
	for _, p := range want {
		missing[p] = true
	}
	for _, a := range have {
		p, ok := prefixOf(a)
		if !ok || p.Addr().IsLinkLocalUnicast() && p.Addr().Is6() {
			continue
		}
		if missing[p] {
			delete(missing, p)
			continue
		}
		if err := h.AddrDel(link, &a); err != nil {
			return fmt.Errorf("take %s from %s: %w", p, device, err)
		}
	}
	for _, p := range want {
		if !missing[p] {
			continue
		}
		if err := addAddress(h, link, p); err != nil {
			return fmt.Errorf("give %s to %s: %w", p, device, err)
		}
	}
	return nil
}

func addAddress(h *netlink.Handle, link netlink.Link, p netip.Prefix) error {
	a, err := netlink.ParseAddr(p.String())
	if err != nil {
		return err
	}
	if p.Addr().Is6() {
		// The address is the IPAM's: nobody else has it, and dnsmasq binds to it at once.
		a.Flags = unix.IFA_F_NODAD
	}
	return h.AddrReplace(link, a)
}

func prefixOf(a netlink.Addr) (netip.Prefix, bool) {
	addr, ok := netip.AddrFromSlice(a.IP)
	if !ok {
		return netip.Prefix{}, false
	}
	bits, _ := a.Mask.Size()
	return netip.PrefixFrom(addr.Unmap(), bits), true
}

// disableIPv6 keeps the host's own IPv6 away from a device, where the host has any.
func disableIPv6(device string) error {
	err := setSysctl("net/ipv6/conf/"+device+"/disable_ipv6", "1")
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// setSysctl writes a kernel setting of the calling thread's namespace, when it differs.
func setSysctl(name, value string) error {
	path := filepath.Join("/proc/sys", name)
	now, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if string(now) == value+"\n" {
		return nil
	}
	return os.WriteFile(path, []byte(value), 0o644)
}

// transmitChecksumsOff makes the calling thread's namespace compute checksums itself on a
// device: the userspace datapath takes packets as they are and would carry them unfinished.
func transmitChecksumsOff(device string) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	value := struct{ command, data uint32 }{unix.ETHTOOL_STXCSUM, 0}
	var request struct {
		name [unix.IFNAMSIZ]byte
		data unsafe.Pointer
		_    [16]byte // struct ifreq is larger than its pointer
	}
	copy(request.name[:unix.IFNAMSIZ-1], device)
	request.data = unsafe.Pointer(&value)
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&request))); errno != 0 {
		return fmt.Errorf("switch transmit checksums of %s off: %w", device, errno)
	}
	return nil
}
