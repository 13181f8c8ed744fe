package build

import (
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"burrow.dev/burrow/internal/errs"
)

// Where GRUB's BIOS stages are and hold the numbers that an installer fills in
// (grub/i386/pc/boot.h of GRUB 2).
const (
	sectorSize        = 512
	bootCodeSize      = 440  // of the first sector; the rest is disk signature and table
	kernelSectorAt    = 0x5c // in boot.img: sector of core.img, 64 bits
	firstBlockListAt  = 0x1f4
	firstBlockCountAt = 0x1fc // in core.img's first sector: sectors that follow it, 16 bits
)

// writeBootLoader puts GRUB's first stage into the first sector of the disk and its core
// into the BIOS boot partition at sector start, which holds room sectors. It is what
// grub-bios-setup does, for a disk that is a file.
func writeBootLoader(disk io.WriterAt, grubDir string, start, room int64) error {
	boot, err := os.ReadFile(filepath.Join(grubDir, "boot.img"))
	if err != nil {
		return err
	}
	core, err := os.ReadFile(filepath.Join(grubDir, "core.img"))
	if err != nil {
		return err
	}
	sectors := (int64(len(core)) + sectorSize - 1) / sectorSize
	switch {
	case len(boot) != sectorSize || len(core) < 2*sectorSize:
		return fmt.Errorf("%w: GRUB's boot.img has %d bytes, core.img %d", errs.ErrInvalid, len(boot), len(core))
	case int64(binary.LittleEndian.Uint16(core[firstBlockCountAt:])) != sectors-1:
		return fmt.Errorf("%w: GRUB's core.img is not made for a BIOS disk", errs.ErrInvalid)
	case sectors > room:
		return fmt.Errorf("%w: GRUB's core.img needs %d sectors, the BIOS boot partition has %d", errs.ErrInvalid, sectors, room)
	}
	binary.LittleEndian.PutUint64(boot[kernelSectorAt:], uint64(start))
	binary.LittleEndian.PutUint64(core[firstBlockListAt:], uint64(start+1))
	if _, err := disk.WriteAt(boot[:bootCodeSize], 0); err != nil {
		return err
	}
	_, err = disk.WriteAt(core, start*sectorSize)
	return err
}
