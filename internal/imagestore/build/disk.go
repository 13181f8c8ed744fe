package build

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/uuid"

	"burrow.dev/burrow/internal/imagestore/tool"
)

// Layout of the disk. The root partition is the last one on the disk and the first in
// the table, so that growpart can grow it and everybody finds it.
const (
	diskSize  = 4 << 30 // virtual size: what a small server needs; disks grow at first boot
	biosStart = 2048    // sectors; 1 MiB, the usual alignment
	biosRoom  = 6144    // sectors; 3 MiB for GRUB's core
	rootStart = biosStart + biosRoom
	rootLabel = "burrow-root"
	gptTail   = 2048 // sectors left free at the end for the backup table, aligned

	biosBootType  = "21686148-6449-6E6F-744E-656564454649"
	linuxRootType = "4F68BCE3-E8CD-4DB1-96E7-FBCAF984B709" // x86-64
)

// mke2fsConf fixes the features of the root filesystem: a newer mke2fs on the host turns
// on some that the image's GRUB and kernel cannot read.
const mke2fsConf = `[defaults]
	base_features = sparse_super,large_file,filetype,resize_inode,dir_index,ext_attr
	default_mntopts = acl,user_xattr
	enable_periodic_fsck = 0
	blocksize = 4096
	inode_size = 256
	inode_ratio = 16384
[fs_types]
	ext4 = {
		features = has_journal,extent,huge_file,flex_bg,metadata_csum,64bit,dir_nlink,extra_isize
	}
`

// writeDisk makes raw a bootable disk with the folder root as its root filesystem.
// Neither a mount nor a loop device is needed. id gives the disk its identifiers.
func writeDisk(ctx context.Context, run tool.Runner, root, raw string, id uuid.UUID) error {
	if err := sparseFile(raw, diskSize); err != nil {
		return err
	}
	rootSectors := int64(diskSize/sectorSize - rootStart - gptTail)
	table := fmt.Sprintf("label: gpt\nlabel-id: %s\n"+
		"14 : start=%d, size=%d, type=%s, name=bios, uuid=%s\n"+
		"1 : start=%d, size=%d, type=%s, name=root, uuid=%s\n",
		derived(id, "disk"),
		biosStart, biosRoom, biosBootType, derived(id, "bios"),
		rootStart, rootSectors, linuxRootType, derived(id, "root"))
	if err := run(ctx, tool.Command{Name: "sfdisk", Args: []string{"--quiet", raw}, Stdin: strings.NewReader(table)}); err != nil {
		return err
	}
	conf := raw + ".mke2fs.conf"
	if err := os.WriteFile(conf, []byte(mke2fsConf), 0o600); err != nil {
		return err
	}
	fsID := derived(id, "filesystem").String()
	options := []string{
		fmt.Sprintf("offset=%d", rootStart*sectorSize), "hash_seed=" + fsID,
		// Zeroed now, while zeros cost nothing, instead of by the guest's kernel.
		"lazy_itable_init=0", "lazy_journal_init=0",
	}
	if err := run(ctx, tool.Command{
		Name: "mke2fs",
		Args: []string{
			"-q", "-F", "-t", "ext4", "-L", rootLabel, "-U", fsID, "-m", "1",
			"-E", strings.Join(options, ","), "-d", root, raw, fmt.Sprintf("%dk", rootSectors*sectorSize/1024),
		},
		Env: []string{"MKE2FS_CONFIG=" + conf},
	}); err != nil {
		return err
	}
	disk, err := os.OpenFile(raw, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer disk.Close()
	if err := writeBootLoader(disk, filepath.Join(root, "boot/grub/i386-pc"), biosStart, biosRoom); err != nil {
		return err
	}
	return disk.Close()
}

func sparseFile(path string, size int64) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Truncate(size)
}

// derived gives a build's identifiers: the same for the same build, so that two hosts
// that build it differ in nothing they need not.
func derived(id uuid.UUID, part string) uuid.UUID { return uuid.NewSHA1(id, []byte(part)) }
