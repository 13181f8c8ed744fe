package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	ucli "github.com/urfave/cli/v2"

	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/internal/installation"
)

// announceFlag names the file descriptor on which a background `burrow up` tells how
// its start goes.
const announceFlag = "announce-fd"

// announcement is one line of it.
type announcement struct {
	Text   string `json:"text,omitempty"`
	Ready  bool   `json:"ready,omitempty"`
	Failed string `json:"failed,omitempty"`
	Next   string `json:"next,omitempty"`
	Code   int    `json:"code,omitempty"`
}

// announcer gives what runUp calls with progress, readiness and failure: they go to
// standard output, or to the `burrow up --detach` that waits at the other end of a pipe.
func announcer(c *ucli.Context) (say func(string), ready func(), failed func(error) error) {
	if c.Int(announceFlag) == 0 {
		say = func(text string) { fmt.Fprintln(c.App.Writer, text) }
		return say, func() {}, func(err error) error { return err }
	}
	pipe := os.NewFile(uintptr(c.Int(announceFlag)), "announcements")
	syscall.CloseOnExec(c.Int(announceFlag)) // the parts must not hold it open
	encoder := json.NewEncoder(pipe)
	encode := func(a announcement) { _ = encoder.Encode(a) } // whoever waited may have gone
	say = func(text string) { encode(announcement{Text: text}) }
	ready = func() {
		encode(announcement{Ready: true})
		_ = pipe.Close()
	}
	failed = func(err error) error {
		text, next := words(err)
		encode(announcement{Failed: text, Next: next, Code: codeOf(err)})
		return err
	}
	return say, ready, failed
}

// detach starts `burrow up` in a session of its own and waits until it is ready or has
// failed. Stopped while waiting, it stops what it started.
func detach(c *ucli.Context, folder installation.Folder) error {
	if err := os.MkdirAll(folder.LogDir(), 0o755); err != nil {
		return errs.NewOperator(folder.LogDir(), "make", err, "run as root")
	}
	path := filepath.Join(folder.LogDir(), "up.log")
	log, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o640)
	if err != nil {
		return errs.NewOperator(path, "open", err, "run as root")
	}
	defer log.Close()
	announcements, told, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("burrow up: make pipe: %w", err)
	}
	defer announcements.Close()
	self, err := os.Executable()
	if err != nil {
		return errors.Join(fmt.Errorf("burrow up: find this program: %w", err), told.Close())
	}
	devstack, err := installation.FindDevstack(c.String("devstack"), self) // relative paths mean this working folder
	if err != nil {
		return errors.Join(err, told.Close())
	}
	background := exec.Command(self, append(backgroundArgs(c, folder), "--devstack="+devstack)...)
	background.Dir = "/"
	background.Stdout, background.Stderr = log, log
	background.ExtraFiles = []*os.File{told} // file descriptor 3
	background.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err = background.Start()
	if err = errors.Join(err, told.Close()); err != nil {
		return fmt.Errorf("burrow up: start in the background: %w", err)
	}
	stopped := make(chan struct{})
	go func() { // ends with this function: the defer below closes stopped
		select {
		case <-c.Context.Done():
			_ = background.Process.Signal(syscall.SIGTERM) // gone already is as good
		case <-stopped:
		}
	}()
	defer close(stopped)
	known, err := readAnnouncements(announcements, c.App.Writer)
	switch {
	case known && err == nil:
		return background.Process.Release()
	case c.Context.Err() != nil:
		return errors.Join(c.Context.Err(), background.Wait())
	}
	ended := background.Wait()
	if !known {
		return errs.NewOperator("burrow up", "start in the background", errs.Reason("it ended without a word: %v", ended), "look at "+path)
	}
	return err
}

// backgroundArgs repeats the flags of this command.
func backgroundArgs(c *ucli.Context, folder installation.Folder) []string {
	args := []string{"up", "--data-dir=" + string(folder), "--" + announceFlag + "=3"}
	for _, name := range []string{"temporal-port", "ui-port", "etcd-port", "host-name", "accelerator", "keys-ca", "keys-allow-private"} {
		if !c.IsSet(name) {
			continue
		}
		value := fmt.Sprint(c.Value(name))
		if name == "keys-ca" {
			if absolute, err := filepath.Abs(value); err == nil { // relative paths mean this working folder
				value = absolute
			}
		}
		args = append(args, "--"+name+"="+value)
	}
	return args
}

// readAnnouncements prints progress until an announcement says how it went; known is
// false when none did.
func readAnnouncements(announcements io.Reader, w io.Writer) (known bool, err error) {
	for decoder := json.NewDecoder(announcements); ; {
		var a announcement
		switch err := decoder.Decode(&a); {
		case err != nil:
			return false, nil
		case a.Failed != "":
			return true, &ExitError{Code: a.Code, Err: errs.NewOperator("burrow up", "start in the background", errors.New(a.Failed), a.Next)}
		case a.Ready:
			return true, nil
		}
		fmt.Fprintln(w, a.Text)
	}
}
