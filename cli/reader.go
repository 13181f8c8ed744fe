package cli

import (
	"context"
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// whileRead is ctx until nobody reads out any more: `burrow get -w | head -1` would else go
// on until its next line fails, which may be tomorrow. stop ends it, and must be called.
func whileRead(ctx context.Context, out io.Writer) (reading context.Context, stop func()) {
	reading, cancel := context.WithCancel(ctx)
	file, ok := out.(*os.File)
	if !ok {
		return reading, cancel
	}
	wake, end, err := os.Pipe()
	if err != nil {
		return reading, cancel // it then ends with the next line
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer cancel()
		awaitReaderGone(file, wake)
	}()
	return reading, func() {
		_ = end.Close()
		<-ended
		_ = wake.Close()
	}
}

// awaitReaderGone returns when the other end of out is closed, or that of wake.
func awaitReaderGone(out, wake *os.File) {
	conn, err := out.SyscallConn()
	if err != nil {
		return
	}
	_ = conn.Control(func(fd uintptr) {
		// No event is asked for: errors and the end of the other side are always told.
		fds := []unix.PollFd{{Fd: int32(fd)}, {Fd: int32(wake.Fd()), Events: unix.POLLIN}}
		for {
			if _, err := unix.Poll(fds, -1); !errors.Is(err, unix.EINTR) {
				return
			}
		}
	})
}
