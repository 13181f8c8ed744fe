package imagestore

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"

	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/internal/imagestore/tool"
)

// Bounds for qemu-img on a file from outside: an honest image needs a fraction of each.
const (
	inspectMemory  = 2 << 30 // bytes of address space
	inspectSeconds = 120     // of CPU time; a check reads all tables
	maxVirtual     = 8 << 40 // bytes; beyond it a size is a mistake or an attack
	minVirtual     = 1 << 20
	maxToolOutput  = 1 << 20
	notFound       = 127 // exit status of prlimit when there is no such program
	leaksOnly      = 3   // exit status of qemu-img check
)

// facts is what inspection found out.
type facts struct {
	format       string // "qcow2" or "raw"
	virtualBytes int64
}

// inspect proves that a file is a disk image that stands alone, first by its own header,
// then by QEMU's eyes. Everything that is not is Permanent ErrInvalid.
func inspect(ctx context.Context, object, path string) (facts, error) {
	refuse := func(cause error) (facts, error) { return facts{}, refusal(object, cause) }
	f, err := os.Open(path)
	if err != nil {
		return facts{}, err
	}
	defer f.Close()
	h, ok, err := ReadHeader(f)
	if err != nil {
		return refuse(err)
	}
	format := "raw"
	if ok {
		format = "qcow2"
		if err := h.standsAlone(); err != nil {
			return refuse(err)
		}
	} else if err := bootSector(f); err != nil {
		return refuse(err)
	}
	info, err := qemuInfo(ctx, format, path)
	switch {
	case ctx.Err() != nil:
		return facts{}, context.Cause(ctx)
	case errors.Is(err, exec.ErrNotFound), tool.ExitCode(err) == notFound:
		return facts{}, errs.NewOperator(object, "verify", err, "apt-get install qemu-utils util-linux")
	case err != nil:
		return facts{}, notAnImage(object, err)
	case info.Backing != "" || info.Specific.Data.DataFile != "":
		return refuse(fmt.Errorf("%w: it refers to another file", errs.ErrInvalid))
	case info.VirtualSize > maxVirtual || info.VirtualSize < minVirtual:
		return refuse(fmt.Errorf("%w: virtual size of %d bytes", errs.ErrInvalid, info.VirtualSize))
	}
	if format == "qcow2" {
		if err := qemuCheck(ctx, path); err != nil {
			return facts{}, notAnImage(object, err)
		}
	}
	return facts{format: format, virtualBytes: info.VirtualSize}, nil
}

func refusal(object string, cause error) error {
	return errs.NewPermanent(object, "verify", cause, "give a complete qcow2 or raw disk image that needs no other file")
}

// notAnImage is what it means that qemu-img did not like the file. That it could not be
// run at all means nothing.
func notAnImage(object string, err error) error {
	var said *tool.Error
	if !errors.As(err, &said) {
		return err
	}
	return refusal(object, fmt.Errorf("%w: damaged or cut short: %w", errs.ErrInvalid, err))
}

// bootSector accepts as raw what a BIOS would: whole sectors, and the mark in the first.
// A web page or an archive is no raw image, although any bytes could be.
func bootSector(f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	sector := make([]byte, 512)
	if _, err := f.ReadAt(sector, 0); err != nil || info.Size()%512 != 0 || !bytes.Equal(sector[510:], []byte{0x55, 0xaa}) {
		return fmt.Errorf("%w: neither qcow2 nor a bootable raw disk", errs.ErrInvalid)
	}
	return nil
}

type qemuImageInfo struct {
	VirtualSize int64  `json:"virtual-size"`
	Backing     string `json:"backing-filename"`
	Specific    struct {
		Data struct {
			DataFile string `json:"data-file"`
		} `json:"data"`
	} `json:"format-specific"`
}

func qemuInfo(ctx context.Context, format, path string) (info qemuImageInfo, err error) {
	out, err := qemuImg(ctx, "info", "--output=json", "-f", format, path)
	if err != nil {
		return info, err
	}
	return info, json.Unmarshal(out, &info)
}

// qemuCheck finds clusters that are missing at the end of a truncated file, and tables
// that contradict each other. Leaked clusters are harmless.
func qemuCheck(ctx context.Context, path string) error {
	_, err := qemuImg(ctx, "check", "-q", "-f", "qcow2", path)
	if tool.ExitCode(err) == leaksOnly {
		return nil
	}
	return err
}

// qemuImg runs qemu-img within bounds of memory, time and output, unable to write a file.
func qemuImg(ctx context.Context, args ...string) ([]byte, error) {
	bounds := []string{
		"--as=" + strconv.FormatInt(inspectMemory, 10), "--cpu=" + strconv.Itoa(inspectSeconds), "--core=0", "--fsize=0",
		"qemu-img",
	}
	var out limited
	err := tool.Run(ctx, tool.Command{Name: "prlimit", Args: append(bounds, args...), Stdout: &out})
	return out.Bytes(), err
}

// limited keeps the first maxToolOutput bytes of what is written to it.
type limited struct{ bytes.Buffer }

func (l *limited) Write(p []byte) (int, error) {
	if room := maxToolOutput - l.Len(); room > 0 {
		l.Buffer.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}
