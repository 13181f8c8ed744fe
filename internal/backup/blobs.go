package backup

import (
	"burrow.dev/burrow/internal/blob"
	"burrow.dev/burrow/manifest"
)

// BlobsOf gives the keys of the blobs that a record's status names.
func BlobsOf(bundle string, run *manifest.PlaybookStatus) []string {
	var keys []string
	if key, err := blob.BundleKey(bundle); err == nil {
		keys = append(keys, key)
	}
	if run != nil && blob.CheckKey(run.LogKey) == nil {
		keys = append(keys, run.LogKey)
	}
	return keys
}
