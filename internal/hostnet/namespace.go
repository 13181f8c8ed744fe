package hostnet

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"

	"golang.org/x/sys/unix"

	"burrow.dev/burrow/internal/errs"
)

// namespaceDir is where `ip netns` keeps namespaces by name.
const namespaceDir = "/run/netns"

func namespacePath(name string) string { return filepath.Join(namespaceDir, name) }

func namespaceExists(name string) (bool, error) {
	_, err := os.Stat(namespacePath(name))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// addNamespace makes a named namespace; there already is success.
func addNamespace(ctx context.Context, name string) error {
	exists, err := namespaceExists(name)
	if err != nil {
		return err
	}
	if exists && isNamespace(name) {
		return nil
	}
	if exists {
		// A name without a namespace mounted on it: its maker was killed in between.
		if err := os.Remove(namespacePath(name)); err != nil {
			return err
		}
	}
	return run(ctx, "", "ip", "netns", "add", name)
}

// isNamespace tells whether something is mounted on the name.
func isNamespace(name string) bool {
	var st unix.Statfs_t
	const nsfs = 0x6e736673
	return unix.Statfs(namespacePath(name), &st) == nil && int64(st.Type) == nsfs
}

// deleteNamespace deletes a named namespace with the devices in it; none is success.
func deleteNamespace(ctx context.Context, name string) error {
	exists, err := namespaceExists(name)
	if err != nil || !exists {
		return err
	}
	if !isNamespace(name) {
		return os.Remove(namespacePath(name))
	}
	return run(ctx, "", "ip", "netns", "delete", name)
}

// inside runs fn on a thread that is in the named namespace, and processes that fn starts
// are in it too. fn must not hand work that opens sockets to other goroutines.
func inside(name string, fn func() error) error {
	target, err := os.Open(namespacePath(name))
	if err != nil {
		return fmt.Errorf("namespace %s: %w", name, err)
	}
	defer target.Close()
	result := make(chan error, 1)
	go func() { result <- onThread(target, fn) }()
	return <-result
}

// onThread enters the namespace, runs fn, and comes back. A thread that cannot come back
// stays locked and so ends with its goroutine. A panic of fn is its error.
func onThread(target *os.File, fn func() error) (err error) {
	runtime.LockOSThread()
	own, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		runtime.UnlockOSThread()
		return err
	}
	defer own.Close()
	if err := unix.Setns(int(target.Fd()), unix.CLONE_NEWNET); err != nil {
		runtime.UnlockOSThread()
		return fmt.Errorf("enter %s: %w", target.Name(), err)
	}
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic in %s: %v", target.Name(), r)
		}
		if unix.Setns(int(own.Fd()), unix.CLONE_NEWNET) == nil {
			runtime.UnlockOSThread()
		}
	}()
	return fn()
}

// Dial connects by TCP to an address inside a namespace, as its gateway. address is
// "IP:port"; names are refused, since there is nobody to resolve them in there.
// The connection may be used from any goroutine and outlives the namespace's name.
//
// No such namespace → transient, errors.Is errs.ErrNotFound.
func (s *Stack) Dial(ctx context.Context, namespace, address string) (net.Conn, error) {
	object := "namespace " + namespace
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return nil, errs.NewPermanent(object, "dial "+address, errors.Join(errs.ErrInvalid, err), "give an IP address and a port")
	}
	if exists, err := namespaceExists(namespace); err == nil && !exists {
		return nil, errs.NewTransient(object, "dial "+address, fmt.Errorf("%w on this host", errs.ErrNotFound))
	}
	var conn net.Conn
	err = inside(namespace, func() (err error) {
		// One literal address: the dialer opens its socket on this very thread.
		conn, err = new(net.Dialer).DialContext(ctx, "tcp", to.String())
		return err
	})
	if err != nil {
		return nil, errs.NewTransient(object, "dial "+address, err)
	}
	return conn, nil
}
