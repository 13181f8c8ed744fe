package etcdstate

import (
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"burrow.dev/burrow/internal/devstacktest"
)

func TestSerialsAreEachOwnersOwnAndNeverUsedAgain(t *testing.T) {
	endpoint := devstacktest.Etcd(t)
	const owners = 20
	var mu sync.Mutex
	has, of := map[string]int64{}, map[int64]string{}
	var group errgroup.Group
	for range 3 {
		s := newLossyStore(t, endpoint)
		for n := range owners {
			group.Go(func() error {
				owner := fmt.Sprint("o", n)
				got, err := insist(func() (int64, error) { return s.Serial(t.Context(), "disks", owner) })
				if err != nil {
					return err
				}
				mu.Lock()
				defer mu.Unlock()
				if (of[got] != "" && of[got] != owner) || (has[owner] != 0 && has[owner] != got) {
					return fmt.Errorf("%s got %d, had %d; %d is %q's", owner, got, has[owner], got, of[got])
				}
				of[got], has[owner] = owner, got
				return nil
			})
		}
	}
	require.NoError(t, group.Wait())
	require.Len(t, of, owners)
	require.Contains(t, of, int64(owners), "no gaps, whatever was lost")
	first, err := openStore(t, endpoint, Options{}).Serial(t.Context(), "others", "o1")
	require.NoError(t, err)
	require.Equal(t, int64(1), first)
}
