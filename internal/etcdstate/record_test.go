package etcdstate

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"burrow.dev/burrow/internal/devstacktest"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/manifest"
)

func TestCreateGetListDelete(t *testing.T) {
	s := newTestStore(t)
	ctx := t.Context()
	_, err := s.Get(ctx, manifest.KindServer, "db")
	require.ErrorIs(t, err, errs.ErrNotFound)
	require.Equal(t, errs.Permanent, errs.ClassOf(err))

	made, err := s.Create(ctx, server("db", "u1"))
	require.NoError(t, err)
	require.Positive(t, made.Metadata.ResourceVersion)
	got, err := s.Get(ctx, manifest.KindServer, "db")
	require.NoError(t, err)
	require.Equal(t, made, got)
	again, err := s.Create(ctx, server("db", "u1"))
	require.NoError(t, err, "the same uid: an answer that was lost")
	require.Equal(t, made, again)
	_, err = s.Create(ctx, server("db", "u2"))
	require.ErrorIs(t, err, errs.ErrExists)

	_, err = s.Create(ctx, server("app", "u3"))
	require.NoError(t, err)
	list, err := s.List(ctx, manifest.KindServer)
	require.NoError(t, err)
	require.Len(t, list, 2)
	require.Equal(t, "app", list[0].Metadata.Name)
	many, err := s.GetMany(ctx, manifest.KindServer, "db", "absent", "app")
	require.NoError(t, err)
	require.Len(t, many, 2)
	require.Equal(t, "db", many[0].Metadata.Name)

	require.ErrorIs(t, s.Delete(ctx, manifest.KindServer, "db", "u2"), errs.ErrConflict)
	require.NoError(t, s.Delete(ctx, manifest.KindServer, "db", "u1"))
	require.NoError(t, s.Delete(ctx, manifest.KindServer, "db", "u1"), "absent")
}

func TestListReadsMoreThanAPage(t *testing.T) {
	s := newTestStore(t)
	var group errgroup.Group
	group.SetLimit(8)
	for n := range listPage + 7 {
		group.Go(func() error {
			_, err := s.Create(t.Context(), server(fmt.Sprintf("s%04d", n), "u"))
			return err
		})
	}
	require.NoError(t, group.Wait())
	list, err := s.List(t.Context(), manifest.KindServer)
	require.NoError(t, err)
	require.Len(t, list, listPage+7)
}

func TestNoUpdateIsLostAmongConcurrentWriters(t *testing.T) {
	s := newTestStore(t)
	_, err := s.Create(t.Context(), server("db", "u"))
	require.NoError(t, err)
	const writers, updates = 8, 10
	var group errgroup.Group
	for range writers {
		group.Go(func() error {
			for range updates {
				for {
					_, err := s.Update(t.Context(), manifest.KindServer, "db", func(r *manifest.Record) error {
						r.Metadata.Generation++
						return nil
					})
					if err == nil {
						break
					}
					if !errors.Is(err, errs.ErrConflict) {
						return err
					}
				}
			}
			return nil
		})
	}
	require.NoError(t, group.Wait())
	rec, err := s.Get(t.Context(), manifest.KindServer, "db")
	require.NoError(t, err)
	require.Equal(t, int64(writers*updates), rec.Metadata.Generation)
}

func TestUpdateReturnsTheChangesErrorAndWritesNothing(t *testing.T) {
	s := newTestStore(t)
	made, err := s.Create(t.Context(), server("db", "u"))
	require.NoError(t, err)
	mine := errors.New("mine")
	_, err = s.Update(t.Context(), manifest.KindServer, "db", func(r *manifest.Record) error {
		r.Metadata.Generation = 99
		return mine
	})
	require.Equal(t, mine, err)
	got, err := s.Get(t.Context(), manifest.KindServer, "db")
	require.NoError(t, err)
	require.Equal(t, made, got)
	_, err = s.Update(t.Context(), manifest.KindServer, "absent", func(*manifest.Record) error { return nil })
	require.ErrorIs(t, err, errs.ErrNotFound)
}

func TestValuesStayBelow64KiB(t *testing.T) {
	s := newTestStore(t)
	rec := server("db", "u")
	rec.Status.Seed = strings.Repeat("x", MaxValue) // what programs read is refused, not cut
	_, err := s.Create(t.Context(), rec)
	require.ErrorIs(t, err, errs.ErrInvalid)
	require.ErrorContains(t, err, "64 KiB")
	require.Equal(t, errs.Permanent, errs.ClassOf(err))
}

func TestNamesThatWouldLeaveTheirFolderAreRefused(t *testing.T) {
	s := newTestStore(t)
	for _, name := range []string{"", "a/b", "../x", "a\x00"} {
		_, err := s.Get(t.Context(), manifest.KindServer, name)
		require.ErrorIs(t, err, errs.ErrInvalid, "%q", name)
	}
	_, err := s.Get(t.Context(), "Nonsense", "db")
	require.ErrorIs(t, err, errs.ErrInvalid)
}

func TestEtcdAwayIsTransientAndACancelledCallIsNot(t *testing.T) {
	t.Parallel()
	s := openStore(t, "http://127.0.0.1:1", Options{})
	_, err := s.Get(t.Context(), manifest.KindServer, "db")
	require.ErrorIs(t, err, errs.ErrUnavailable)
	require.Equal(t, errs.Transient, errs.ClassOf(err))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = s.Get(ctx, manifest.KindServer, "db")
	require.ErrorIs(t, err, context.Canceled)
	require.NotErrorIs(t, err, errs.ErrUnavailable)
}

func TestListingHoldsAPageOfRecords(t *testing.T) {
	const n = 3*recordsPage + 1
	endpoint := devstacktest.Etcd(t)
	createMany(t, openStore(t, endpoint, Options{}), n)
	var read values
	s := openStore(t, endpoint, read.options())
	told := int64(0)
	require.NoError(t, s.Each(t.Context(), manifest.KindServer, func(manifest.Record) error {
		require.LessOrEqual(t, read.Load(), told+recordsPage)
		told++
		return nil
	}))
	require.Equal(t, int64(n), told)
}
