package backup

import (
	"encoding/json"
	"path"
	"strings"
	"time"

	"burrow.dev/burrow/internal/blob"
	"burrow.dev/burrow/internal/config"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/internal/etcdstate"
)

// FormatVersion changes when an older burrow could not read a file right.
const FormatVersion = 1

// Names of entries.
const (
	headerName   = "burrow-backup.json"
	schemaName   = "temporal/schema.json"
	databaseName = "temporal/temporal.db"
	blobFolder   = "blobs/"
	recordFolder = "etcd/"
	recordSuffix = ".jsonl"
	sumsName     = "SHA256SUMS"
	endName      = "end.json"
)

// Bounds of what a file may make us keep in memory. Blobs and the database stream.
const (
	mostHeader = 1 << 20
	mostSums   = 256 << 20 // a line an entry: millions of blobs
	// pageBytes is where a page of records is ended, mostPage what is read of one.
	pageBytes = 1 << 20
	mostPage  = 4 << 20
	mostKey   = 4 << 10
	// maxWindow bounds what the decompressor keeps.
	maxWindow = 64 << 20
)

// Header says what a backup is of.
type Header struct {
	Format int    `json:"format"`
	Burrow string `json:"burrow"`
	// Made is when it began.
	Made time.Time `json:"made"`
	// Prefix that the records were below; keys are without it.
	Prefix string `json:"prefix"`
	// Embedded is true for an installation of `burrow up`.
	Embedded bool `json:"embedded"`
	// MasterKey is the id of the key that new secrets were sealed under. The key is not in the backup.
	MasterKey string `json:"masterKey"`
	// Host, Keys and the ports are what `burrow up` was told once.
	Host  config.Host `json:"host"`
	Keys  config.Keys `json:"keys"`
	Ports HeaderPorts `json:"ports,omitzero"`
}

// HeaderPorts of an embedded installation.
type HeaderPorts struct {
	Temporal int `json:"temporal"`
	WebUI    int `json:"webUI"`
	Etcd     int `json:"etcd"`
}

// End says what a complete file holds.
type End struct {
	// Revision of etcd that all records are as of.
	Revision int64 `json:"revision"`
	// Keys of etcd, and among them Records that users see.
	Keys    int `json:"keys"`
	Records int `json:"records"`
	Secrets int `json:"secrets"`
	Blobs   int `json:"blobs"`
	// Missing are blobs that records name and that were not there.
	Missing []string `json:"missing,omitempty"`
	// History is true when Temporal's database is in the file.
	History bool `json:"history"`
	// Sums is the SHA-256 of SHA256SUMS, hex.
	Sums string `json:"sums"`
}

// Line is a key of etcd, one JSON object on a line.
type Line struct {
	Key         string `json:"key"`
	Value       []byte `json:"value"`
	Revision    int64  `json:"revision"`
	Quarantined bool   `json:"quarantined,omitempty"`
}

func lineOf(k etcdstate.Kept) ([]byte, error) {
	text, err := json.Marshal(Line{Key: k.Key, Value: k.Value, Revision: k.Revision, Quarantined: k.Quarantined})
	return append(text, '\n'), err
}

func (l Line) kept() etcdstate.Kept {
	return etcdstate.Kept{Key: l.Key, Value: l.Value, Revision: l.Revision, Quarantined: l.Quarantined}
}

// check refuses what no backup of ours holds. previous is the key before, "" at first.
func (l Line) check(previous string) error {
	switch {
	case l.Key == "" || len(l.Key) > mostKey || strings.ContainsAny(l.Key, "\x00") || strings.HasPrefix(l.Key, "/"):
		return damaged("a record has the key %.80q", l.Key)
	case l.Key <= previous:
		return damaged("the key %.80q stands after %.80q", l.Key, previous)
	case len(l.Value) >= etcdstate.MaxValue:
		return damaged("the value of %.80q has %d bytes", l.Key, len(l.Value))
	case l.Revision <= 0:
		return damaged("the record %.80q has revision %d", l.Key, l.Revision)
	case l.Quarantined != etcdstate.IsQuarantine(l.Key):
		return damaged("the record %.80q is not as its key says", l.Key)
	case strings.HasPrefix(l.Key, "alive/"), strings.HasPrefix(l.Key, "locks/"), l.Key == "restoring":
		return damaged("the key %.80q is in no backup", l.Key)
	}
	return nil
}

// blobKey gives the key of a blob's entry.
func blobKey(name string) (string, error) {
	key, ok := strings.CutPrefix(name, blobFolder)
	if !ok || path.Clean(key) != key {
		return "", damaged("it has an entry %.200q", name)
	}
	if err := blob.CheckKey(key); err != nil {
		return "", damaged("it has an entry %.200q", name)
	}
	return key, nil
}

// damaged is what is said of a file that is not a whole backup.
func damaged(format string, args ...any) error {
	return errs.NewPermanent("backup", "read", errs.Reason("%w: "+format, append([]any{errs.ErrInvalid}, args...)...),
		"nothing was changed; use another copy")
}
