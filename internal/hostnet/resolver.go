package hostnet

import (
	"bufio"
	"bytes"
	"net/netip"
	"os"
	"strings"
)

// resolvConfs are where a host's resolvers are written: where the first names only a stub
// on loopback, the second has what systemd-resolved asks.
var resolvConfs = []string{"/etc/resolv.conf", "/run/systemd/resolve/resolv.conf"}

// Resolvers gives the host's DNS servers that a namespace can reach: IPv4, not on
// loopback. None is no error: then a network resolves its own names only.
func Resolvers() []netip.Addr { return resolversOf(resolvConfs) }

func resolversOf(paths []string) []netip.Addr {
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		if found := parseResolvConf(text); len(found) > 0 {
			return found
		}
	}
	return nil
}

// parseResolvConf reads the nameserver lines of a resolv.conf(5).
func parseResolvConf(text []byte) []netip.Addr {
	var found []netip.Addr
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) < 2 || fields[0] != "nameserver" {
			continue
		}
		addr, err := netip.ParseAddr(fields[1])
		if err != nil || !addr.Unmap().Is4() || addr.Unmap().IsLoopback() || addr.IsUnspecified() {
			continue
		}
		found = append(found, addr.Unmap())
	}
	return found
}
