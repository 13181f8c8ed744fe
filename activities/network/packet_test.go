package network_test

import (
	"encoding/binary"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func eventually(t testing.TB, condition func() bool) {
	t.Helper()
	require.Eventually(t, condition, patience, 20*time.Millisecond)
}

// link opens a raw socket on a device in a namespace ("" is the host's own).
func link(t testing.TB, ns, device string) int {
	t.Helper()
	var fd int
	in(t, ns, func() error {
		dev, err := net.InterfaceByName(device)
		if err != nil {
			return err
		}
		all := int(binary.NativeEndian.Uint16([]byte{0x00, 0x03})) // ETH_P_ALL in network order
		fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, all)
		if err != nil {
			return err
		}
		return errors.Join(
			unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: uint16(all), Ifindex: dev.Index}),
			unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_AUXDATA, 1),
			unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Usec: 20000}),
		)
	})
	t.Cleanup(func() { unix.Close(fd) })
	return fd
}

// capture gives the incoming frames that match, until one did and only (or quiet) has
// passed. A VLAN tag that the kernel has put beside the frame is put back into it.
func capture(t testing.TB, fd int, wait time.Duration, match func([]byte) bool) [][]byte {
	t.Helper()
	var found [][]byte
	buf, oob := make([]byte, 4096), make([]byte, 256)
	for deadline := time.Now().Add(wait); time.Now().Before(deadline); {
		n, oobn, _, from, err := unix.Recvmsg(fd, buf, oob, 0)
		if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR) {
			continue
		}
		require.NoError(t, err)
		if ll, ok := from.(*unix.SockaddrLinklayer); ok && ll.Pkttype == unix.PACKET_OUTGOING {
			continue
		}
		frame := withTag(buf[:n], oob[:oobn])
		if match(frame) {
			found = append(found, frame)
		}
	}
	return found
}

// withTag reads tpacket_auxdata: status, len, snaplen, mac, net, vlan_tci, vlan_tpid.
func withTag(frame, oob []byte) []byte {
	frame = append([]byte(nil), frame...)
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return frame
	}
	for _, m := range messages {
		if m.Header.Level != unix.SOL_PACKET || m.Header.Type != unix.PACKET_AUXDATA || len(m.Data) < 20 {
			continue
		}
		if binary.NativeEndian.Uint32(m.Data)&unix.TP_STATUS_VLAN_VALID == 0 {
			continue
		}
		tag := binary.BigEndian.AppendUint16([]byte{0x81, 0x00}, binary.NativeEndian.Uint16(m.Data[16:]))
		return append(frame[:12:12], append(tag, frame[12:]...)...)
	}
	return frame
}

// tagOf gives the VLAN of a frame; 0 is untagged.
func tagOf(frame []byte) int {
	if len(frame) < 18 || frame[12] != 0x81 || frame[13] != 0 {
		return 0
	}
	return int(binary.BigEndian.Uint16(frame[14:]) & 0xfff)
}

func send(t testing.TB, fd int, frame []byte) {
	t.Helper()
	_, err := unix.Write(fd, frame)
	require.NoError(t, err)
}

var broadcast = net.HardwareAddr{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}

func macOf(text string) net.HardwareAddr { return must(net.ParseMAC(text)) }

// ethernet is a frame; vlan 0 is untagged.
func ethernet(to, from net.HardwareAddr, vlan int, protocol uint16, payload []byte) []byte {
	b := append(append([]byte(nil), to...), from...)
	if vlan != 0 {
		b = binary.BigEndian.AppendUint16(append(b, 0x81, 0x00), uint16(vlan))
	}
	b = append(binary.BigEndian.AppendUint16(b, protocol), payload...)
	for len(b) < 60 {
		b = append(b, 0)
	}
	return b
}

// arp is a request (1) or reply (2) as its sender would have it.
func arp(op uint16, sha net.HardwareAddr, spa string, tpa string) []byte {
	b := []byte{0, 1, 8, 0, 6, 4}
	b = binary.BigEndian.AppendUint16(b, op)
	b = append(append(b, sha...), net.ParseIP(spa).To4()...)
	return append(append(b, 0, 0, 0, 0, 0, 0), net.ParseIP(tpa).To4()...)
}

// udp4 is an IPv4 packet with UDP in it.
func udp4(from, to string, sport, dport uint16, data string) []byte {
	u := binary.BigEndian.AppendUint16(nil, sport)
	u = binary.BigEndian.AppendUint16(u, dport)
	u = binary.BigEndian.AppendUint16(u, uint16(8+len(data)))
	u = append(append(u, 0, 0), data...)
	h := binary.BigEndian.AppendUint16([]byte{0x45, 0}, uint16(20+len(u)))
	h = append(h, 0, 1, 0, 0, 64, 17, 0, 0)
	h = append(append(h, net.ParseIP(from).To4()...), net.ParseIP(to).To4()...)
	binary.BigEndian.PutUint16(h[10:], checksum(h))
	return append(h, u...)
}

// icmp6 is an IPv6 packet with an ICMPv6 message.
func icmp6(from, to string, kind byte, body []byte) []byte {
	src, dst := net.ParseIP(from).To16(), net.ParseIP(to).To16()
	m := append([]byte{kind, 0, 0, 0}, body...)
	pseudo := append(append(append([]byte(nil), src...), dst...), 0, 0, 0, byte(len(m)), 0, 0, 0, 58)
	binary.BigEndian.PutUint16(m[2:], checksum(append(pseudo, m...)))
	h := []byte{0x60, 0, 0, 0, 0, byte(len(m)), 58, 255}
	return append(append(append(h, src...), dst...), m...)
}

func checksum(b []byte) uint16 {
	var sum uint32
	for i := 0; i < len(b); i += 2 {
		word := uint32(b[i]) << 8
		if i+1 < len(b) {
			word |= uint32(b[i+1])
		}
		sum += word
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	return ^uint16(sum)
}
