package lab

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"

	"golang.org/x/sys/unix"
)

const (
	// uplink is the host's device towards the Internet.
	uplink = "internet"
	// slirpResolver is slirp4netns's own DNS address; it asks the machine's resolvers.
	slirpResolver = "10.0.2.3"
)

// connect gives the network namespace of pid a configured tap to the Internet. The
// process that carries the packets lives in the machine's network; it ends with
// disconnect, and also when the caller's thread does.
func connect(pid int) (disconnect func(), err error) {
	ready, tell, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer ready.Close()
	cmd := exec.Command("slirp4netns", "--configure", "--mtu=1500", "--disable-host-loopback",
		"--ready-fd=3", strconv.Itoa(pid), uplink)
	cmd.ExtraFiles = []*os.File{tell}
	var said bytes.Buffer
	cmd.Stderr = &said
	cmd.SysProcAttr = &unix.SysProcAttr{Pdeathsig: unix.SIGKILL}
	err = cmd.Start()
	tell.Close()
	if err != nil {
		return nil, fmt.Errorf("start slirp4netns: %w", err)
	}
	disconnect = func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
	if _, err := io.ReadFull(ready, make([]byte, 1)); err != nil {
		disconnect()
		return nil, fmt.Errorf("slirp4netns: %w: %s", err, said.String())
	}
	return disconnect, nil
}
