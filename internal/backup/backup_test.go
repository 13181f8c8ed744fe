package backup

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sync/errgroup"

	"burrow.dev/burrow/internal/addrspace"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/internal/etcdstate/addresses"
	"burrow.dev/burrow/manifest"
)

func TestRestoreEqualsTheBackupKeyByKeyAndBlobByBlob(t *testing.T) {
	from, to := newInstallation(t), newInstallation(t)
	for n := range 30 {
		from.server(fmt.Sprintf("db-%03d", n))
	}
	for n := range 1200 { // more than a page
		_, err := from.records.Client().Put(t.Context(), from.records.Key("vnis", fmt.Sprint(n)), strings.Repeat("x", 2000))
		require.NoError(t, err)
	}
	earlier := "logs/uid-db-000/run-0.log"
	require.NoError(t, from.blobs.Put(t.Context(), earlier, strings.NewReader("earlier")))
	require.NoError(t, from.blobs.Put(t.Context(), "logs/uid-gone/run-0.log", strings.NewReader("of nobody")))
	_, err := from.records.Client().Txn(t.Context()).Then(
		clientv3.OpPut(from.records.Key("macs", "52:54:00:00:00:01"), "uid-db-000"),
		clientv3.OpPut(from.records.Key("macs", "52:54:00:00:00:02"), "uid-db-000"),
	).Commit()
	require.NoError(t, err)

	file, end := from.backup(nil)
	require.Equal(t, 30+1200+2, end.Keys)
	require.Equal(t, 30, end.Records)
	require.Equal(t, 61, end.Blobs)
	require.NoError(t, to.restore(file, false))
	requireSame(t, from.kept(), to.kept())
	for _, key := range []string{"logs/uid-db-000/run-1.log", earlier} {
		require.Equal(t, from.blob(key), to.blob(key))
	}
	keys, err := to.blobs.List(t.Context(), "")
	require.NoError(t, err)
	require.Len(t, keys, 61, "what nobody names any more is not brought back")

	require.ErrorIs(t, to.restore(file, false), errs.ErrExists)
	require.NoError(t, to.restore(file, true), "again, over itself")
	requireSame(t, from.kept(), to.kept())
}

func TestABackupIsOneMomentWhileWritersGoOn(t *testing.T) {
	from, to := newInstallation(t), newInstallation(t)
	client := from.records.Client()
	ctx, cancel := context.WithCancel(t.Context())
	var group errgroup.Group
	for w := range 4 {
		group.Go(func() error {
			for n := 0; ctx.Err() == nil; n++ {
				value := fmt.Sprint(n)
				_, err := client.Txn(t.Context()).Then(
					clientv3.OpPut(from.records.Key("macs", fmt.Sprintf("%d-first-%d", w, n%200)), value),
					clientv3.OpPut(from.records.Key("vnis", fmt.Sprintf("%d-second-%d", w, n%200)), value),
				).Commit()
				if err != nil {
					return err
				}
			}
			return nil
		})
	}
	var last []byte
	for range 5 {
		file, end := from.backup(nil)
		contents, err := Verify(t.Context(), bytes.NewReader(file))
		require.NoError(t, err)
		require.Equal(t, end.Keys, contents.Keys)
		last = file
	}
	cancel()
	require.NoError(t, group.Wait())

	require.NoError(t, to.restore(last, false))
	kept := to.kept()
	pairs := 0
	for key, k := range kept {
		if rest, ok := strings.CutPrefix(key, "macs/"); ok {
			other, ok := kept["vnis/"+strings.Replace(rest, "first", "second", 1)]
			require.True(t, ok, key)
			require.Equal(t, k.Value, other.Value, key)
			require.Equal(t, k.Revision, other.Revision, key)
			pairs++
		}
	}
	require.Positive(t, pairs)
	require.Equal(t, len(kept), 2*pairs)
}

func TestAddressesCanBeGivenBackAndTakenAfterARestore(t *testing.T) {
	from, to := newInstallation(t), newInstallation(t)
	pool := addresses.New(from.records, addresses.Options{})
	_, err := pool.Settle(t.Context(), "net-1", "net", func([]addrspace.Entry) (manifest.NetworkStatus, error) {
		return manifest.NetworkStatus{Subnets: []manifest.Subnet{{CIDR: "10.0.0.0/29", Gateway: "10.0.0.1"}}}, nil
	})
	require.NoError(t, err)
	owner := func(n int) []addrspace.Want { return []addrspace.Want{{Owner: fmt.Sprintf("u%d/eth0/0", n)}} }
	var got []netip.Prefix
	for n := range 3 {
		given, err := pool.Allocate(t.Context(), "net-1", owner(n))
		require.NoError(t, err)
		got = append(got, given...)
	}
	require.NoError(t, pool.Release(t.Context(), "net-1", "u2/eth0/"))
	pool.Close()
	file, _ := from.backup(nil)
	require.NoError(t, to.restore(file, false))

	pool = addresses.New(to.records, addresses.Options{Quarantine: -1})
	defer pool.Close()
	again, err := pool.Allocate(t.Context(), "net-1", owner(1))
	require.NoError(t, err)
	require.Equal(t, got[1:2], again, "the same owner, the same answer")
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	require.NoError(t, pool.Release(ctx, "net-1", "u0/eth0/"))
	for n := 10; n < 13; n++ { // .4 is in quarantine, .2 was released just now
		given, err := pool.Allocate(ctx, "net-1", owner(n))
		require.NoError(t, err)
		require.NotEqual(t, got[2], given[0], "quarantine goes on")
	}
	_, err = pool.Allocate(ctx, "net-1", owner(13))
	var quarantined *addrspace.QuarantineError
	var exhausted *addrspace.ExhaustedError
	require.True(t, asAny(err, &quarantined, &exhausted), "%v", err)
}

func TestBlobsThatComeAndGoMeanwhileAreRight(t *testing.T) {
	from, to := newInstallation(t), newInstallation(t)
	from.server("stays")
	old := from.server("goes")
	passes := 0
	var file bytes.Buffer
	end, err := Create(t.Context(), &file, Header{Made: time.Now()}, hooked{from.records, func(int64) {
		if passes++; passes > 1 {
			return
		}
		// After the first look at the records: one and its blobs go, another comes.
		require.NoError(t, from.records.Delete(t.Context(), manifest.KindServer, "goes", old.Metadata.UID))
		for _, key := range BlobsOf(old.Status.Bundle, old.Status.Playbook) {
			require.NoError(t, from.blobs.Delete(t.Context(), key))
		}
		from.server("comes")
	}}, from.blobs, nil)
	require.NoError(t, err)
	require.Empty(t, end.Missing)
	require.NoError(t, to.restore(file.Bytes(), false))
	requireSame(t, from.kept(), to.kept())
	require.Equal(t, "log of comes", to.blob("logs/uid-comes/run-1.log"))
}

func TestABlobThatIsReallyMissingOrDamagedIsNamedAndDoesNotStopABackup(t *testing.T) {
	from, to := newInstallation(t), newInstallation(t)
	lost, hurt := from.server("lost"), from.server("hurt")
	require.NoError(t, from.blobs.Delete(t.Context(), lost.Status.Playbook.LogKey))
	bundle := BlobsOf(hurt.Status.Bundle, nil)[0]
	require.NoError(t, from.blobs.Delete(t.Context(), bundle))
	file, end := from.backup(nil)
	require.ElementsMatch(t, []string{lost.Status.Playbook.LogKey, bundle}, end.Missing)
	require.NoError(t, to.restore(file, false))
	requireSame(t, from.kept(), to.kept())
}

func TestBundlesOfARetryThatIsUnderWayAreInTheBackup(t *testing.T) {
	i := newInstallation(t)
	old := i.server("other") // its bundle is older than the operation
	require.NoError(t, i.records.Delete(t.Context(), manifest.KindServer, "other", old.Metadata.UID))
	rec := i.server("held")
	_, err := i.records.Update(t.Context(), manifest.KindServer, "held", func(r *manifest.Record) error {
		r.Status.Phase = manifest.PhaseHeld
		r.Status.Operation = &manifest.Operation{WorkflowID: "server/held", RunID: "r", Since: time.Now().Add(-time.Minute)}
		return nil
	})
	require.NoError(t, err)
	retry := i.server("retry") // as `burrow retry -f` sends one: no record names it yet
	require.NoError(t, i.records.Delete(t.Context(), manifest.KindServer, "retry", retry.Metadata.UID))
	file, end := i.backup(nil)
	require.Empty(t, end.Missing)
	to := newInstallation(t)
	require.NoError(t, to.restore(file, false))
	require.Equal(t, "playbook of retry", to.blob(BlobsOf(retry.Status.Bundle, nil)[0]))
	require.Equal(t, "playbook of held", to.blob(BlobsOf(rec.Status.Bundle, nil)[0]))
}

func TestTemporalsDatabaseComesBackAsItWas(t *testing.T) {
	i := newInstallation(t)
	i.server("db")
	database := bytes.Repeat([]byte("histories "), 1_000_000)
	file, end := i.backup(&History{Database: bytes.NewReader(database), DatabaseSize: int64(len(database)), Schema: []byte(`{"v":1}`)})
	require.True(t, end.History)
	called := 0
	require.NoError(t, ExtractHistory(t.Context(), bytes.NewReader(file), func(schema []byte, r io.Reader) error {
		called++
		require.Equal(t, `{"v":1}`, string(schema))
		var got bytes.Buffer
		_, err := got.ReadFrom(r)
		require.True(t, bytes.Equal(database, got.Bytes()))
		return err
	}))
	require.Equal(t, 1, called)
	refused := errors.New("no room")
	require.ErrorIs(t, ExtractHistory(t.Context(), bytes.NewReader(file), func([]byte, io.Reader) error { return refused }), refused)
}

func TestAFileAppearsWholeOrNotAtAll(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "b")
	fails := func(w io.Writer) error { _, _ = w.Write([]byte("half")); return context.Canceled }
	works := func(w io.Writer) error { _, err := w.Write([]byte("whole")); return err }
	require.ErrorIs(t, WriteFile(t.Context(), path, false, fails), context.Canceled)
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left)

	require.NoError(t, WriteFile(t.Context(), path, false, works))
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	require.ErrorIs(t, WriteFile(t.Context(), path, false, works), errs.ErrExists)
	require.ErrorContains(t, WriteFile(t.Context(), path, false, works), "--force")
	require.ErrorIs(t, WriteFile(t.Context(), path, true, fails), context.Canceled)
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "whole", string(text), "what was there stays when its replacement fails")

	other := filepath.Join(dir, "late")
	require.ErrorIs(t, WriteFile(t.Context(), other, false, func(w io.Writer) error {
		require.NoError(t, os.WriteFile(other, []byte("mine"), 0o600))
		return works(w)
	}), errs.ErrExists, "also one that came meanwhile")
	cancelled, cancel := context.WithCancel(t.Context())
	require.ErrorIs(t, WriteFile(cancelled, filepath.Join(dir, "c"), false, func(w io.Writer) error { cancel(); return works(w) }), context.Canceled)
	left, err = os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, left, 2)
}

func TestAFullDiskLeavesNothing(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("mounting takes root")
	}
	dir := mountSmall(t)
	err := WriteFile(t.Context(), filepath.Join(dir, "b"), false, func(w io.Writer) error {
		for {
			if _, err := w.Write(make([]byte, 64<<10)); err != nil {
				return fmt.Errorf("backup: write: %w", err)
			}
		}
	})
	require.ErrorIs(t, err, errs.ErrNoSpace)
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left)
}
