package ports

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"
)

// ErrTaken is wrapped by every TakenError.
var ErrTaken = errors.New("address already in use")

// TakenError says which address is taken, for what it was wanted, and by whom it is held.
type TakenError struct {
	// Purpose is what the address was wanted for: "Temporal frontend".
	Purpose string
	// Address is host:port.
	Address string
	// Flag is the flag that chooses another port: "--temporal-port".
	Flag string
	// Holder is empty when the owner could not be read (another user's process, another namespace).
	Holder string
}

// Error names purpose, address, holder and the mend.
func (e *TakenError) Error() string {
	holder := "by a process that this user may not see (try: ss -ltnp as root)"
	if e.Holder != "" {
		holder = "by " + e.Holder
	}
	return fmt.Sprintf("%s: listen on %s: the port is held %s; stop it or choose another port with %s",
		e.Purpose, e.Address, holder, e.Flag)
}

// Unwrap gives ErrTaken.
func (e *TakenError) Unwrap() error { return ErrTaken }

// Want is one address that is going to be listened on. Port 0 takes a free one.
type Want struct {
	Purpose string
	Flag    string
	Host    string
	Port    int
}

// Claim checks that all wanted addresses are free at the same moment and gives
// the ports in the order of wants, with free ones filled in for 0. Every taken
// port is reported, not only the first. The ports are free again when Claim
// returns, so another process can still take one.
func Claim(wants ...Want) ([]int, error) {
	chosen := make([]int, len(wants))
	var taken []error
	for i, want := range wants {
		address := net.JoinHostPort(want.Host, fmt.Sprint(want.Port))
		listener, err := net.Listen("tcp", address)
		switch {
		case errors.Is(err, syscall.EADDRINUSE):
			taken = append(taken, &TakenError{Purpose: want.Purpose, Address: address, Flag: want.Flag, Holder: holder(want.Port)})
			continue
		case err != nil:
			taken = append(taken, fmt.Errorf("%s: listen on %s: %w; choose another address with %s", want.Purpose, address, err, want.Flag))
			continue
		}
		defer listener.Close()
		bound, err := netip.ParseAddrPort(listener.Addr().String())
		if err != nil {
			return nil, fmt.Errorf("%s: read the bound address: %w", want.Purpose, err)
		}
		chosen[i] = int(bound.Port())
	}
	return chosen, errors.Join(taken...)
}
