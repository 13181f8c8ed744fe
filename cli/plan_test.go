package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"burrow.dev/burrow/manifest"
	"burrow.dev/burrow/workflows"
)

const planned = `apiVersion: v1
kind: Server
metadata: {name: db, labels: {role: db}}
spec:
  cpu: 2
  networkInterface: [{networkname: host-bridge}]
  storage:
    - metadata: {name: data}
      spec: {size: 3, persistent: true}
    - metadata: {name: scratch}
      spec: {size: 1}
`

// planOf plans a manifest against records.
func planOf(t *testing.T, text string, records ...manifest.Record) (*plan, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "m.yaml")
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	known := manifest.NewSnapshot(records, []string{"ubuntu24.04"}, true)
	set, problems := manifest.Check(t.Context(), []string{file}, manifest.Options{}, known)
	require.NoError(t, problems.Err())
	p, err := makePlan(t.Context(), set, known, false)
	if p != nil {
		t.Cleanup(p.close)
	}
	return p, err
}

// built are the records of a plan that was carried out.
func built(t *testing.T, p *plan) []manifest.Record {
	t.Helper()
	var records []manifest.Record
	for _, d := range p.documents {
		var rec manifest.Record
		switch {
		case d.Volume != nil:
			rec = record(t, manifest.KindVolume, d.Volume.Metadata, d.Volume.Spec, manifest.PhaseReady)
			rec.Status.Volume = &manifest.VolumeStatus{}
		case d.Server != nil:
			rec = record(t, manifest.KindServer, d.Server.Metadata, d.Server.Spec, manifest.PhaseRunning)
		}
		records = append(records, rec)
	}
	return records
}

func record(t *testing.T, kind manifest.Kind, meta manifest.Metadata, spec any, phase manifest.Phase) manifest.Record {
	t.Helper()
	text, err := json.Marshal(spec)
	require.NoError(t, err)
	return manifest.Record{
		APIVersion: manifest.APIVersion, Kind: kind, Metadata: manifest.RecordMeta{Metadata: meta, UID: "uid-" + meta.Name},
		Spec: text, Status: manifest.Status{Phase: phase},
	}
}

func TestAPersistentDiskIsPlannedAsAVolumeOfItsOwnBeforeItsServer(t *testing.T) {
	p, err := planOf(t, planned)
	require.NoError(t, err)
	require.Len(t, p.documents, 2)
	require.Equal(t, "volume/data", p.documents[0].Ref)
	require.Equal(t, 3, p.documents[0].Volume.Spec.Size)
	require.Contains(t, p.documents[1].DependsOn, "volume/data")
	require.Nil(t, p.documents[1].Server.Spec.Storage[0].Spec)
	require.NotNil(t, p.documents[1].Server.Spec.Storage[1].Spec, "the other disk stays the server's")
}

func TestWhatStandsAsDeclaredIsLeftAlone(t *testing.T) {
	first, err := planOf(t, planned)
	require.NoError(t, err)
	again, err := planOf(t, planned, built(t, first)...)
	require.NoError(t, err)
	require.Empty(t, again.documents)
	require.Equal(t, []string{"volume/data", "server/db"}, again.unchanged)
}

func TestAChangeThatCannotBeMadeIsRefusedWithItsFieldsAndLine(t *testing.T) {
	first, err := planOf(t, planned)
	require.NoError(t, err)
	records := built(t, first)
	records[1].Spec = bytes.Replace(records[1].Spec, []byte(`"mmImage":"ubuntu24.04"`), []byte(`"mmImage":"debian12"`), 1)
	records[0].Metadata.NodeName = "kvm9" // its volume is there already
	_, err = planOf(t, strings.Replace(planned, "labels: {role: db}", "nodeName: kvm9", 1), records...)
	require.ErrorContains(t, err, "m.yaml:1: server/db")
	require.ErrorContains(t, err, "metadata.nodeName is kvm9")
	require.ErrorContains(t, err, "spec.mmImage is ubuntu24.04, and the server was built from debian12")
	require.ErrorContains(t, err, "burrow rebuild server db --image ubuntu24.04")
	require.Equal(t, ExitInvalid, codeOf(err))
}

func TestAServerThatDiffersIsChangedAndTheDryRunSaysHow(t *testing.T) {
	first, err := planOf(t, planned)
	require.NoError(t, err)
	p, err := planOf(t, strings.Replace(planned, "cpu: 2", "cpu: 4", 1), built(t, first)...)
	require.NoError(t, err)
	require.Len(t, p.documents, 1)
	require.Equal(t, 4, p.documents[0].Update.Spec.CPU)
	require.Nil(t, p.documents[0].Server)
	var out bytes.Buffer
	p.print(&out)
	require.Equal(t, "volume/data is as declared\nserver/db: spec.cpu: 2 → 4; at once where the running guest takes it, else after a restart (now with --restart)\n", out.String())
}

func TestAFailedServerIsBuiltAgain(t *testing.T) {
	first, err := planOf(t, planned)
	require.NoError(t, err)
	records := built(t, first)
	records[1].Status = manifest.Status{Phase: manifest.PhaseFailed, Message: "no luck"}
	again, err := planOf(t, planned, records...)
	require.NoError(t, err)
	require.Len(t, again.documents, 1)
	require.Equal(t, "server/db", again.documents[0].Ref)
}

func TestAnApplyNamesTheDocumentThatStandsDifferently(t *testing.T) {
	file := filepath.Join(t.TempDir(), "net.yaml")
	text := "# a comment\napiVersion: v1\nkind: Network\nmetadata: {name: office}\nspec: {mode: isolated, subnets: [{cidr: 10.0.0.0/24}]}\n"
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	rec := manifest.Record{Kind: manifest.KindNetwork, Spec: json.RawMessage(`{"mode":"nat"}`)}
	rec.Metadata.Name, rec.Status.Phase = "office", manifest.PhaseReady
	known := manifest.NewSnapshot([]manifest.Record{rec}, nil, true)
	set, problems := manifest.Load(t.Context(), []string{file}, manifest.Options{})
	require.NoError(t, problems.Err())
	_, err := makePlan(t.Context(), set, known, false)
	var out bytes.Buffer
	require.Equal(t, ExitInvalid, report(&out, err))
	require.Contains(t, out.String(), "error: "+file+":2: network/office: apply: it stands, and differs in spec.")
	require.Contains(t, out.String(), "\n  next: undo the edit, or `burrow delete network/office` and apply again\n")
}

func TestAnApplyOfTooManyIsRefusedWhenItIsPlanned(t *testing.T) {
	var text strings.Builder
	for n := range workflows.MostDocuments + 1 {
		fmt.Fprintf(&text, "---\napiVersion: v1\nkind: Volume\nmetadata: {name: v%d}\nspec: {size: 1}\n", n)
	}
	_, err := planOf(t, text.String())
	require.ErrorContains(t, err, "apply it in parts")
}
