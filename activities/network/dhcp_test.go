package network_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"net"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"burrow.dev/burrow/manifest"
)

func TestALeaseIsExactlyTheAddressOfTheIPAM(t *testing.T) {
	s := newSite(t)
	rec := s.network(t, "db-net", isolated, `{"dhcp":true}`)
	asks := func(address string) func(*manifest.Port) {
		return func(p *manifest.Port) { p.DHCP4, p.Gateways, p.Addresses = true, nil, []string{address} }
	}
	db, web := s.newGuest(t, "db", rec, asks("172.16.90.40/24")), s.newGuest(t, "web", rec, asks("172.16.90.7/24"))
	for _, g := range []*guest{db, web} {
		sh(t, "ip -n "+g.ns+" addr flush dev eth0")
		s.provision(t, g)
	}
	for g, want := range map[*guest]string{db: "172.16.90.40", web: "172.16.90.7"} {
		eventually(t, func() bool { return offered(t, g, g.port().MAC) == want })
	}
	require.Empty(t, offered(t, db, "52:54:00:99:99:99"), "a MAC that nobody has gets nothing")
}

// offered asks for an address by DHCP from a guest that has none.
func offered(t *testing.T, g *guest, mac string) string {
	t.Helper()
	const transaction = 0x62757277
	request := make([]byte, 240, 300)
	request[0], request[1], request[2] = 1, 1, 6
	binary.BigEndian.PutUint32(request[4:], transaction)
	request[10] = 0x80 // answer by broadcast
	copy(request[28:], macOf(mac))
	copy(request[236:], []byte{99, 130, 83, 99})
	request = append(request, 53, 1, 1, 55, 2, 1, 3, 255) // DISCOVER; mask, router
	var address string
	in(t, g.ns, func() error {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		err = errors.Join(
			unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_BROADCAST, 1),
			unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1),
			unix.BindToDevice(fd, "eth0"),
			unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Usec: 400000}),
			unix.Bind(fd, &unix.SockaddrInet4{Port: 68}),
			unix.Sendto(fd, request, 0, &unix.SockaddrInet4{Port: 67, Addr: [4]byte{255, 255, 255, 255}}),
		)
		if err != nil {
			return err
		}
		reply := make([]byte, 1500)
		n, _, err := unix.Recvfrom(fd, reply, 0)
		if err == nil && n > 240 && binary.BigEndian.Uint32(reply[4:]) == transaction && bytes.Equal(reply[28:34], macOf(mac)) {
			address = net.IP(reply[16:20]).String()
		}
		return nil
	})
	return address
}
