package scripts

import (
	"bytes"
	"context"
	"errors"
	"os"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"burrow.dev/burrow/internal/blob"
	"burrow.dev/burrow/internal/bundle"
)

// store packs a folder, as apply does, into the gateway's store, and has a record name it
// where that says BUNDLE: `store playbook records/server-db.json`.
func store(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: store FOLDER RECORD")
	}
	var archive bytes.Buffer
	digest, _, err := bundle.Pack(ts.MkAbs(args[0]), &archive)
	ts.Check(err)
	ctx := context.Background()
	blobs, err := blob.Open(ctx, "file://"+ts.MkAbs(".blobs"))
	ts.Check(err)
	key, err := blob.BundleKey(digest)
	ts.Check(err)
	ts.Check(errors.Join(blobs.Put(ctx, key, &archive), blobs.Close()))
	record := strings.ReplaceAll(ts.ReadFile(args[1]), "BUNDLE", digest)
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), []byte(record), 0o600))
}
