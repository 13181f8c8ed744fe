package imagestore

import (
	"encoding/binary"
	"fmt"
	"io"

	"burrow.dev/burrow/internal/errs"
)

// Fields and bits of a qcow2 header (docs/interop/qcow2.txt of QEMU).
const (
	qcow2Magic       = 0x514649fb // "QFI\xfb"
	qcow2HeaderSize  = 104
	qcow2Dirty       = 1 << 0
	qcow2Corrupt     = 1 << 1
	qcow2ExternalRaw = 1 << 2
	qcow2KnownBits   = 1<<5 - 1 // dirty, corrupt, external data, compression type, extended L2
	maxBackingName   = 1023
)

// Header is what a qcow2 file says of itself in its first bytes.
type Header struct {
	Version      uint32
	VirtualBytes uint64
	Encrypted    bool
	Incompatible uint64 // version 3: feature bits
	// Backing is the file name of the image below, "" for none.
	Backing string
}

// ReadHeader reads a qcow2 header. ok is false, without an error, for a file of another
// format; a header that is cut short or makes no sense is ErrInvalid.
func ReadHeader(r io.ReaderAt) (h Header, ok bool, err error) {
	b := make([]byte, qcow2HeaderSize)
	n, err := r.ReadAt(b, 0)
	if err != nil && err != io.EOF {
		return Header{}, false, err
	}
	if n < 4 || binary.BigEndian.Uint32(b) != qcow2Magic {
		return Header{}, false, nil
	}
	if n < 72 {
		return Header{}, false, fmt.Errorf("%w: qcow2 header ends after %d bytes", errs.ErrInvalid, n)
	}
	h.Version = binary.BigEndian.Uint32(b[4:])
	h.VirtualBytes = binary.BigEndian.Uint64(b[24:])
	h.Encrypted = binary.BigEndian.Uint32(b[32:]) != 0
	switch {
	case h.Version == 3 && n >= 80:
		h.Incompatible = binary.BigEndian.Uint64(b[72:])
	case h.Version != 2:
		return Header{}, false, fmt.Errorf("%w: qcow2 version %d", errs.ErrInvalid, h.Version)
	}
	offset, size := binary.BigEndian.Uint64(b[8:]), binary.BigEndian.Uint32(b[16:])
	if offset == 0 || size == 0 {
		return h, true, nil
	}
	if size > maxBackingName || offset > 1<<21 { // it stands in the first cluster, 2 MiB at most
		return Header{}, false, fmt.Errorf("%w: backing file name of %d bytes at %d", errs.ErrInvalid, size, offset)
	}
	name := make([]byte, size)
	if _, err := r.ReadAt(name, int64(offset)); err != nil {
		return Header{}, false, fmt.Errorf("%w: backing file name is cut short", errs.ErrInvalid)
	}
	h.Backing = string(name)
	return h, true, nil
}

// standsAlone is nil for an image that needs no other file and no key: what may become
// a base image. A stranger's image with a backing file would show a guest the host's files.
func (h Header) standsAlone() error {
	switch {
	case h.Backing != "":
		return fmt.Errorf("%w: it has a backing file (%q)", errs.ErrInvalid, h.Backing)
	case h.Incompatible&qcow2ExternalRaw != 0:
		return fmt.Errorf("%w: its data is in another file", errs.ErrInvalid)
	case h.Encrypted:
		return fmt.Errorf("%w: it is encrypted", errs.ErrInvalid)
	case h.Incompatible&qcow2Corrupt != 0:
		return fmt.Errorf("%w: it is marked corrupt", errs.ErrInvalid)
	case h.Incompatible&qcow2Dirty != 0:
		return fmt.Errorf("%w: it was not closed by whoever wrote it", errs.ErrInvalid)
	case h.Incompatible&^uint64(qcow2KnownBits) != 0:
		return fmt.Errorf("%w: it uses qcow2 features that are not known here (%#x)", errs.ErrInvalid, h.Incompatible)
	}
	return nil
}
