package manifest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

const clusterText = `
apiVersion: v1
kind: Playbook
metadata: {name: cluster}
spec:
  playbook: site.yaml
  targets: {servers: [db], selector: {role: web}}
  extraVars: {replicas: 2}
  dependsOn: [volume/shared]
---
apiVersion: v1
kind: Volume
metadata: {name: shared}
spec: {size: 1}
---
apiVersion: v1
kind: Server
metadata: {name: db}
spec: {mmImage: debian12}
---
apiVersion: v1
kind: Server
metadata: {name: web-1, labels: {role: web}}
spec: {mmImage: debian12}
---
apiVersion: v1
kind: Server
metadata: {name: other, labels: {role: mail}}
spec: {mmImage: debian12}
`

func TestAPlaybookComesAfterTheServersItNamesAndThoseWithItsLabels(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "site.yaml"), []byte("- hosts: all\n"), 0o600))
	set, problems := loadText(t, clusterText, Options{WorkDir: dir})
	require.NoError(t, problems.Err())
	spec := set.Documents[0].Playbook
	require.Equal(t, []string{"site.yaml"}, spec.Playbook)
	require.Equal(t, Targets{Servers: []string{"db"}, Selector: map[string]string{"role": "web"}}, spec.Targets)
	require.Equal(t, []string{"volume/shared"}, spec.DependsOn)
	require.Equal(t, 3, spec.Retries)
	levels, err := Order(set.Documents)
	require.NoError(t, err)
	require.Equal(t, [][]int{{1, 2, 3, 4}, {0}}, levels)
}

func TestAPlaybookNamesItsMistakes(t *testing.T) {
	for name, one := range map[string]struct{ spec, want string }{
		"no targets":          {"{playbook: site.yaml}", "spec.targets: is required"},
		"nobody":              {"{playbook: site.yaml, targets: {}}", "spec.targets: names no server"},
		"unknown server":      {"{playbook: site.yaml, targets: {servers: [nope]}}", `server "nope" is neither in this apply nor known`},
		"twice":               {"{playbook: site.yaml, targets: {servers: [db, db]}}", "is named twice"},
		"labels of nobody":    {"{playbook: site.yaml, targets: {selector: {role: none}}}", "no server has these labels"},
		"no playbook":         {"{targets: {servers: [db]}}", "spec.playbook: is required"},
		"playbook is missing": {"{playbook: gone.yaml, targets: {servers: [db]}}", "gone.yaml does not exist"},
		"a typing mistake":    {"{playbook: site.yaml, targets: {server: [db]}}", "did you mean servers?"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			require.NoError(t, os.WriteFile(filepath.Join(dir, "site.yaml"), []byte("- hosts: all\n"), 0o600))
			_, problems := loadText(t, "{apiVersion: v1, kind: Server, metadata: {name: db}, spec: {mmImage: debian12}}\n---\n"+
				"{apiVersion: v1, kind: Playbook, metadata: {name: a}, spec: "+one.spec+"}", Options{WorkDir: dir})
			require.ErrorContains(t, problems.Err(), one.want)
		})
	}
}

func TestAPlaybookAndAServerThatWaitForEachOtherAreRefused(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "site.yaml"), []byte("- hosts: all\n"), 0o600))
	_, problems := loadText(t, "{apiVersion: v1, kind: Server, metadata: {name: db, labels: {a: b}}, spec: {mmImage: debian12, dependsOn: [playbook/p]}}\n---\n"+
		"{apiVersion: v1, kind: Playbook, metadata: {name: p}, spec: {playbook: site.yaml, targets: {selector: {a: b}}}}", Options{WorkDir: dir})
	require.ErrorContains(t, problems.Err(), "goes round in a circle")
}

func TestAPlaybookRunsAgainWhenAnythingOfItOrItsServersDiffers(t *testing.T) {
	rec := Record{Kind: KindPlaybook, Spec: []byte(`{"playbook":["site.yaml"]}`)}
	rec.Metadata.Name = "p"
	rec.Status = Status{Phase: PhaseReady, Bundle: "sha256:1", Targets: []string{"db@uid.0"}}
	declared := func(change func(*Declared)) Declared {
		d := Declared{Kind: KindPlaybook, Metadata: Metadata{Name: "p"}, Spec: rec.Spec, Bundle: "sha256:1", Targets: []string{"db@uid.0"}}
		change(&d)
		return d
	}
	for name, one := range map[string]struct {
		change func(*Declared)
		stands bool
	}{
		"the same":         {func(*Declared) {}, true},
		"another folder":   {func(d *Declared) { d.Bundle = "sha256:2" }, false},
		"another spec":     {func(d *Declared) { d.Spec = []byte(`{"playbook":["other.yaml"]}`) }, false},
		"rebuilt server":   {func(d *Declared) { d.Targets = []string{"db@uid.1"} }, false},
		"one server more":  {func(d *Declared) { d.Targets = append(d.Targets, "web@uid.0") }, false},
		"nobody has asked": {func(d *Declared) { d.Targets = nil }, false},
	} {
		t.Run(name, func(t *testing.T) {
			decision, err := Decide(&rec, declared(one.change))
			require.NoError(t, err)
			require.Equal(t, one.stands, decision.Stands)
		})
	}
}

func TestATargetsIdentityHasItsBuild(t *testing.T) {
	rec := Record{Metadata: RecordMeta{Metadata: Metadata{Name: "db"}, UID: "uid"}, Status: Status{Rebuild: 2}}
	require.Equal(t, "db@uid.2", TargetIdentity(rec))
	require.Equal(t, "db", TargetName(TargetIdentity(rec)))
}
