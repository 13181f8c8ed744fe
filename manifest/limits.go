package manifest

// Limits on what is read from outside. Each is far above what a person writes and far
// below what could hurt the machine; every message that refuses something names its limit.
const (
	// MaxFileBytes bounds one manifest: hundreds of servers fit in it.
	MaxFileBytes = 256 << 10
	// MaxFileKeys bounds the mapping keys of one manifest, because the YAML parser
	// compares the keys of a mapping pairwise.
	MaxFileKeys = 10_000
	// MaxFileTokens bounds the YAML tokens of one manifest: a token costs far more memory
	// than the byte it may come from.
	MaxFileTokens = 100_000
	// MaxFileDocuments bounds the documents of one manifest.
	MaxFileDocuments = 1_000
	// MaxFileProblems bounds the problems reported for one apply.
	MaxFileProblems = 500
	// MaxFiles bounds the manifests of one apply.
	MaxFiles = 1_000
	// MaxDepth bounds nesting, because the parser recurses.
	MaxDepth = 40
	// MaxNodes bounds one document's values after its aliases are expanded.
	MaxNodes = 100_000
	// MaxSpecBytes bounds a spec's JSON: a record must stay below 64 KiB in etcd.
	MaxSpecBytes = 48 << 10
	// MaxInlineFileBytes bounds a file that a manifest reads in (keys, cloud-init).
	MaxInlineFileBytes = 32 << 10
	// MaxNameLength is that of a DNS label.
	MaxNameLength = 63
	// MaxDeviceName is Linux's IFNAMSIZ without its end mark.
	MaxDeviceName = 15
	// MaxSerial is what virtio-blk carries of a disk's serial.
	MaxSerial = 20
)
