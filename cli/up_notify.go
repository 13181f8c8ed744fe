package cli

import (
	"fmt"
	"net"
	"os"
)

// notifyReady tells systemd (Type=notify) that everything is ready; elsewhere it does
// nothing. The protocol is one datagram to the socket that NOTIFY_SOCKET names
// (sd_notify(3)); a leading @ stands for the abstract namespace.
func notifyReady() error {
	name := os.Getenv("NOTIFY_SOCKET")
	if name == "" {
		return nil
	}
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: name, Net: "unixgram"})
	if err != nil {
		return fmt.Errorf("service manager at %s: connect: %w", name, err)
	}
	defer conn.Close()
	if _, err := conn.Write([]byte("READY=1\nSTATUS=everything is ready\n")); err != nil {
		return fmt.Errorf("service manager at %s: notify: %w", name, err)
	}
	return nil
}
