package cli

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"burrow.dev/burrow/manifest"
)

func TestAnApplyNamesTheDocumentThatStandsDifferently(t *testing.T) {
	file := filepath.Join(t.TempDir(), "net.yaml")
	text := "# a comment\napiVersion: v1\nkind: Network\nmetadata: {name: office}\nspec: {mode: isolated, subnets: [{cidr: 10.0.0.0/24}]}\n"
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	rec := manifest.Record{Kind: manifest.KindNetwork, Spec: json.RawMessage(`{"mode":"nat"}`)}
	rec.Metadata.Name, rec.Status.Phase = "office", manifest.PhaseReady
	known := manifest.NewSnapshot([]manifest.Record{rec}, nil, true)
	set, problems := manifest.Load(t.Context(), []string{file}, manifest.Options{})
	require.NoError(t, problems.Err())
	_, err := makePlan(set, known)
	var out bytes.Buffer
	require.Equal(t, ExitInvalid, report(&out, err))
	require.Contains(t, out.String(), "error: "+file+":2: network/office: apply: it stands, and differs in spec.")
	require.Contains(t, out.String(), "\n  next: undo the edit, or `burrow delete network/office` and apply again\n")
}
