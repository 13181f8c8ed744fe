package sweep

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"burrow.dev/burrow/manifest"
)

func TestWhatIsMissingComesWithAdviceThatWorks(t *testing.T) {
	dir := t.TempDir()
	file := func(name string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, nil, 0o600))
		return path
	}
	here := func() manifest.Record {
		rec := manifest.Record{Kind: manifest.KindServer, Metadata: manifest.RecordMeta{Metadata: manifest.Metadata{Name: "db"}, UID: "u1"}}
		rec.Status = manifest.Status{
			Phase: manifest.PhaseStopped, Host: "kvm1", Seed: file("seed"),
			Disks: []manifest.Disk{{Name: "boot", Path: file("boot"), Owned: true}, {Name: "data", Path: file("data")}},
		}
		return rec
	}
	tests := map[string]struct {
		lose  func(*manifest.Record)
		says  []string
		never string
	}{
		"only the domain": {func(*manifest.Record) {}, []string{"`burrow start db` defines it again"}, "rebuild"},
		"the boot disk too": {
			func(r *manifest.Record) { r.Status.Disks[0].Path = filepath.Join(dir, "no") },
			[]string{"bring the file back", "`burrow rebuild db`", "`burrow delete server/db`"},
			"burrow start",
		},
		"the seed too": {
			func(r *manifest.Record) { r.Status.Seed = filepath.Join(dir, "no") },
			[]string{"bring the file back", "`burrow rebuild db`", "`burrow delete server/db`"},
			"burrow start",
		},
		"a data disk too": {
			func(r *manifest.Record) { r.Status.Disks[1].Path = filepath.Join(dir, "no") },
			[]string{"bring the file back", "`burrow delete server/db`"},
			"burrow start",
		},
		"both disks too": {
			func(r *manifest.Record) {
				r.Status.Disks[0].Path, r.Status.Disks[1].Path = filepath.Join(dir, "no"), filepath.Join(dir, "no")
			},
			[]string{"bring the file back", "`burrow delete server/db`"},
			"burrow rebuild",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			rec := here()
			tt.lose(&rec)
			advice := ""
			for _, f := range (&Host{cfg: HostConfig{Name: "kvm1"}}).missingOf(rec, nil, nil) {
				advice += f.Next + "\n"
			}
			for _, words := range tt.says {
				require.Contains(t, advice, words)
			}
			require.NotContains(t, advice, tt.never)
		})
	}
}
