// Package bundle makes a content-addressed archive of a playbook's folder and
// unpacks it again where the playbook runs. The same folder gives the same bytes,
// whatever its owner, its times and the order of its entries on disk.
//
//	playbook/          Pack                                   Unpack
//	├── site.yaml   ─────────▶  tar, zstd  sha256:9f…  ─────────────▶  <run>/work/bundle/
//	├── roles/                  (blob store: bundles/9f….tar.zst)
//	└── .burrowignore
//
// Both ends are bounded: a folder that is too large is refused with the names of
// its biggest files, and an archive may come from anybody: it can write nothing
// outside its folder and cannot grow past the same bounds.
package bundle

import "errors"

const (
	// MaxBytes bounds the files of a folder, uncompressed. A playbook with its roles
	// is a few hundred KiB; whatever exceeds this is data that belongs in a download.
	MaxBytes = 64 << 20
	// MaxEntries bounds files, folders and symlinks together: each costs an inode and a
	// system call on the host that unpacks.
	MaxEntries = 20000
	// maxWindow bounds the memory an archive can make the decoder take.
	maxWindow = 32 << 20
	// IgnoreFile lists patterns of what stays out, one a line, as .gitignore does.
	IgnoreFile = ".burrowignore"
)

// Sentinels that callers tell apart with errors.Is.
var (
	// ErrTooLarge: the folder or the archive exceeds MaxBytes or MaxEntries.
	ErrTooLarge = errors.New("too large")
	// ErrEscapes: a symlink or a name leads out of the folder.
	ErrEscapes = errors.New("leads out of the folder")
	// ErrUnsupported: an entry that is neither file, folder nor symlink.
	ErrUnsupported = errors.New("unsupported entry")
)
