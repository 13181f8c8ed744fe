package etcdstate

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"golang.org/x/sync/errgroup"

	"burrow.dev/burrow/internal/capacity"
	"burrow.dev/burrow/internal/config"
	"burrow.dev/burrow/internal/devstacktest"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/internal/keyring"
)

// rotateFor makes the test binary a process that rotates the master key: "ENDPOINT FILE".
const rotateFor = "BURROW_TEST_ROTATE"

// rotateAlone prints a line for each step before it goes on, so that it can be killed there.
func rotateAlone(asked string) int {
	endpoint, file, _ := strings.Cut(asked, " ")
	store, err := Open(config.Etcd{Endpoints: []string{endpoint}}, Options{})
	if err != nil {
		return 2
	}
	ring, err := keyring.Open(context.Background(), keyring.Options{File: file})
	if err != nil {
		return 2
	}
	err = OpenSecrets(store, ring).Rotate(context.Background(), keyring.Rotation{By: "child", Host: "kvm1"}, func(s keyring.Step) {
		fmt.Println(s.Phase)
		_, _ = bufio.NewReader(os.Stdin).ReadString('\n') // wait to be let go on, or killed
	})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	return 0
}

// announced runs Announce until the test ends.
func announced(t *testing.T, s *Secrets, host string) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var running sync.WaitGroup
	running.Go(func() { _ = s.Announce(ctx, host) })
	t.Cleanup(func() { cancel(); running.Wait() })
	require.Eventually(t, func() bool {
		all, _, err := s.holders(t.Context())
		return err == nil && len(all) > 0
	}, patience, patience/1000)
}

func quiet(keyring.Step) {}

// underKey counts secrets by the key they are encrypted under.
func underKey(t *testing.T, store *Store) map[string]int {
	t.Helper()
	counts := map[string]int{}
	_, err := store.EachPage(t.Context(), store.Key("secrets", ""), func(kv *mvccpb.KeyValue) error {
		var box sealed
		err := json.Unmarshal(kv.Value, &box)
		counts[box.KeyID]++
		return err
	})
	require.NoError(t, err)
	return counts
}

func TestARotationEncryptsEverythingAgainAndOtherWorkersFollowWithoutARestart(t *testing.T) {
	store := newTestStore(t)
	file := masterKey(t, 1)
	one, two := OpenSecrets(store, openRing(t, file)), OpenSecrets(store, openRing(t, file))
	announced(t, one, "kvm1")
	announced(t, two, "kvm1")
	ctx := t.Context()
	require.NoError(t, two.Put(ctx, "server-keys/u1", []byte("keys")))
	_, err := two.Users().Set(ctx, "pw", []byte("hunter2"), "alice")
	require.NoError(t, err)

	var phases []keyring.Phase
	require.NoError(t, one.Rotate(ctx, keyring.Rotation{By: "alice", Host: "kvm1"}, func(s keyring.Step) {
		if len(phases) == 0 || phases[len(phases)-1] != s.Phase {
			phases = append(phases, s.Phase)
		}
	}))
	require.Equal(t, keyring.Chosen, phases[0])
	require.Equal(t, []keyring.Phase{keyring.Switched, keyring.Encrypts, keyring.Done}, phases[len(phases)-3:])
	state, err := one.readState(ctx)
	require.NoError(t, err)
	require.NotEqual(t, one.ring.First(), state.Current)
	require.Equal(t, map[string]int{state.Current: 2}, underKey(t, store))

	info, err := os.Stat(file + "." + state.Current)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())

	value, err := two.Users().Get(ctx, "pw")
	require.NoError(t, err)
	require.Equal(t, "hunter2", string(value))
	require.NoError(t, two.Put(ctx, "server-keys/u2", []byte("k")), "with what it knows of the time before")
	require.Equal(t, map[string]int{state.Current: 3}, underKey(t, store))
	list, err := two.Users().List(ctx)
	require.NoError(t, err)
	require.Equal(t, "alice", list[0].SetBy, "who set it is kept")

	// The old key can go: a worker with the new one alone reads all.
	require.NoError(t, os.Rename(file+"."+state.Current, file))
	alone := OpenSecrets(store, openRing(t, file))
	_, err = alone.Get(ctx, "server-keys/u1")
	require.NoError(t, err)
	require.NoError(t, alone.Rotate(ctx, keyring.Rotation{Host: "kvm1"}, quiet), "and again")
}

func TestARotationKilledAnywhereLosesNothingAndIsFinishedByTheNext(t *testing.T) {
	const secrets = 3
	ended := false
	for step := 1; !ended; step++ { // killed after its first step, its second, …
		endpoint := devstacktest.Etcd(t)
		store := openStore(t, endpoint, Options{})
		file := masterKey(t, 1)
		s := OpenSecrets(store, openRing(t, file))
		ctx := t.Context()
		for i := range secrets {
			require.NoError(t, s.Put(ctx, fmt.Sprintf("server-keys/%d", i), fmt.Append(nil, i)))
		}
		child := exec.CommandContext(ctx, os.Args[0])
		child.Env = append(os.Environ(), rotateFor+"="+endpoint+" "+file)
		out, err := child.StdoutPipe()
		require.NoError(t, err)
		in, err := child.StdinPipe()
		require.NoError(t, err)
		require.NoError(t, child.Start())
		lines := bufio.NewScanner(out)
		for n := 0; n < step && lines.Scan(); n++ {
			ended = lines.Text() == string(keyring.Done)
			if n < step-1 {
				_, _ = fmt.Fprintln(in)
			}
		}
		require.NoError(t, child.Process.Kill())
		_ = child.Wait()

		after := OpenSecrets(store, openRing(t, file)) // a worker that starts now
		check := func(when string) {
			for i := range secrets {
				value, err := after.Get(ctx, fmt.Sprintf("server-keys/%d", i))
				require.NoError(t, err, "killed after step %d, %s", step, when)
				require.Equal(t, fmt.Append(nil, i), value)
			}
		}
		check("at once")
		require.NoError(t, after.Put(ctx, "server-keys/new", nil), "killed after step %d", step)
		before, unfinished := len(after.ring.IDs()), len(underKey(t, store)) > 1
		require.NoError(t, after.Rotate(ctx, keyring.Rotation{Host: "kvm1"}, quiet), "killed after step %d", step)
		check("finished")
		state, err := after.readState(ctx)
		require.NoError(t, err)
		require.Equal(t, map[string]int{state.Current: secrets + 1}, underKey(t, store), "killed after step %d", step)
		if unfinished || step == 1 {
			require.Equal(t, before, len(after.ring.IDs()), "killed after step %d: the key that was there is taken, no other made", step)
			require.Len(t, state.Retired, 1)
		}
	}
}

func TestWritersAndReadersGoOnDuringRotations(t *testing.T) {
	store := newTestStore(t)
	file := masterKey(t, 1)
	const writers = 6
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var last [writers]string
	var group errgroup.Group
	first := OpenSecrets(store, openRing(t, file))
	for w := range writers {
		s := OpenSecrets(store, openRing(t, file)) // a worker each: it knows what it has read itself
		group.Go(func() error {
			name := fmt.Sprintf("server-keys/%d", w)
			for n := 0; ctx.Err() == nil; n++ {
				value := fmt.Sprint(w, " ", n)
				if n%5 == 4 {
					if err := s.Delete(context.WithoutCancel(ctx), name); err != nil {
						return err
					}
					if _, err := s.PutIfAbsent(context.WithoutCancel(ctx), name, []byte(value)); err != nil {
						return err
					}
				} else if err := s.Put(context.WithoutCancel(ctx), name, []byte(value)); err != nil {
					return err
				}
				last[w] = value
				got, err := s.Get(context.WithoutCancel(ctx), name)
				if err != nil || string(got) != value {
					return fmt.Errorf("%s holds %q, not %q: %w", name, got, value, err)
				}
			}
			return nil
		})
	}
	for range 4 {
		require.NoError(t, first.Rotate(ctx, keyring.Rotation{Host: "kvm1"}, quiet))
	}
	stop()
	require.NoError(t, group.Wait())
	state, err := first.readState(t.Context())
	require.NoError(t, err)
	require.Len(t, state.Retired, 4)
	require.Equal(t, map[string]int{state.Current: writers}, underKey(t, store), "nothing was written under a retired key")
	for w := range writers {
		got, err := first.Get(t.Context(), fmt.Sprintf("server-keys/%d", w))
		require.NoError(t, err)
		require.Equal(t, last[w], string(got))
	}
}

func TestOfTwoRotationsAtOnceNeitherLosesAnything(t *testing.T) {
	store := newTestStore(t)
	file := masterKey(t, 1)
	s := OpenSecrets(store, openRing(t, file))
	require.NoError(t, s.Put(t.Context(), "server-keys/1", []byte("x")))
	var group errgroup.Group
	for range 4 {
		other := OpenSecrets(store, openRing(t, file))
		group.Go(func() error {
			err := other.Rotate(t.Context(), keyring.Rotation{Host: "kvm1"}, quiet)
			if errors.Is(err, errs.ErrConflict) || err != nil && strings.Contains(err.Error(), "several that were never in use") {
				return nil
			}
			return err
		})
	}
	require.NoError(t, group.Wait())
	got, err := s.Get(t.Context(), "server-keys/1")
	require.NoError(t, err)
	require.Equal(t, "x", string(got))
}

func TestAWorkerWithoutTheNewKeyStopsTheRotationUntilItIsCopied(t *testing.T) {
	store := newTestStore(t)
	here, there := masterKey(t, 1), masterKey(t, 1)
	one, two := OpenSecrets(store, openRing(t, here)), OpenSecrets(store, openRing(t, there))
	announced(t, one, "kvm1")
	announced(t, two, "kvm2")
	require.Eventually(t, func() bool {
		all, _, err := one.holders(t.Context())
		return err == nil && len(all) == 2
	}, patience, patience/1000)
	ctx := t.Context()
	require.NoError(t, one.Put(ctx, "server-keys/1", []byte("x")))
	require.NoError(t, store.RegisterHost(ctx, "kvm3", nil, capacity.Spec{}))
	old := one.ring.First()

	impatient, cancel := context.WithCancel(ctx)
	var waits keyring.Step
	err := one.Rotate(impatient, keyring.Rotation{By: "alice", Host: "kvm1"}, func(s keyring.Step) {
		if s.Phase == keyring.Waits && len(s.Hosts) == 2 {
			waits = s
			cancel()
		}
	})
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, []string{"kvm2", "kvm3"}, waits.Hosts)
	require.Equal(t, here+"."+waits.KeyID, waits.Place)
	require.Equal(t, map[string]int{old: 1}, underKey(t, store), "nothing was switched")
	require.NoError(t, two.Put(ctx, "server-keys/2", []byte("y")))

	err = two.Rotate(ctx, keyring.Rotation{Host: "kvm2"}, quiet)
	require.ErrorContains(t, err, "alice began with it on host kvm1, where it is "+here)
	require.ErrorContains(t, err, there+"."+waits.KeyID+" here")

	key, err := os.ReadFile(waits.Place)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(there+"."+waits.KeyID, key[:7], 0o600)) // half copied
	require.NoError(t, two.ring.Reload(ctx))
	require.NoError(t, os.WriteFile(there+"."+waits.KeyID, key, 0o600))
	require.NoError(t, one.Rotate(ctx, keyring.Rotation{Host: "kvm1", Without: []string{"kvm3"}}, quiet))
	require.Equal(t, map[string]int{waits.KeyID: 2}, underKey(t, store))
	got, err := two.Get(ctx, "server-keys/1")
	require.NoError(t, err)
	require.Equal(t, "x", string(got))

	// kvm3 comes back without it: it reads and writes nothing wrong, and says what to do.
	three := OpenSecrets(store, openRing(t, masterKey(t, 1)))
	_, err = three.Get(ctx, "server-keys/1")
	require.ErrorContains(t, err, "it needs master key "+waits.KeyID)
	require.Equal(t, errs.Operator, errs.ClassOf(err))
	require.ErrorContains(t, three.Put(ctx, "server-keys/1", nil), "copy the master key from a worker that has it to ")
}

func TestASecretThatCannotBeReadStopsTheRotationBeforeItsSwitch(t *testing.T) {
	store := newTestStore(t)
	s := openSecrets(t, store, 1)
	require.NoError(t, s.Put(t.Context(), "server-keys/1", []byte("x")))
	_, err := store.client.Put(t.Context(), store.Key("secrets", "user/broken"), `{"keyId":"0011223344556677"}`)
	require.NoError(t, err)
	err = s.Rotate(t.Context(), keyring.Rotation{Host: "kvm1"}, quiet)
	require.ErrorContains(t, err, "1 cannot be read: user/broken")
	require.Len(t, s.ring.IDs(), 1, "no key was made")
}

func TestAFullEtcdIsNotTakenForSecretsThatCannotBeRead(t *testing.T) {
	cluster := devstacktest.StartEtcdCluster(t, 1, devstacktest.ClusterOptions{QuotaBytes: 8 << 20})
	store := openCluster(t, cluster.Config(), Options{})
	s := openSecrets(t, store, 1)
	require.NoError(t, s.Put(t.Context(), "server-keys/1", []byte("x")))
	err := s.Rotate(t.Context(), keyring.Rotation{Host: "kvm1"}, func(step keyring.Step) {
		if step.Phase == keyring.Switched {
			fill(t, store)
		}
	})
	require.ErrorIs(t, err, errs.ErrNoSpace)
	require.ErrorContains(t, err, "disarm the alarm")
	require.NotContains(t, err.Error(), "cannot be read")
}

func TestAWrongMasterKeyIsFoundOutBeforeItEncryptsAnything(t *testing.T) {
	store := newTestStore(t)
	right := openSecrets(t, store, 1)
	require.NoError(t, right.Put(t.Context(), "server-keys/1", []byte("x")))
	wrong := openSecrets(t, store, 2)
	require.ErrorContains(t, wrong.Put(t.Context(), "server-keys/2", []byte("y")), "this worker has only "+wrong.ring.First())
	require.ErrorContains(t, wrong.Rotate(t.Context(), keyring.Rotation{}, quiet), "1 cannot be read: server-keys/1")

	_, err := store.client.Delete(t.Context(), store.Key("masterkey")) // as versions before left it
	require.NoError(t, err)
	_, err = openSecrets(t, store, 2).PutIfAbsent(t.Context(), "server-keys/2", []byte("y"))
	require.ErrorContains(t, err, "it needs master key "+right.ring.First())
}

func TestKeysOfACommandRotateToTheOneItPrintsBesides(t *testing.T) {
	store := newTestStore(t)
	dir := t.TempDir()
	keys := filepath.Join(dir, "keys")
	require.NoError(t, os.WriteFile(keys, []byte(strings.Repeat("11", 32)+"\n"), 0o600))
	ring, err := keyring.Open(t.Context(), keyring.Options{Command: []string{"cat", keys}, Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	s := OpenSecrets(store, ring)
	require.NoError(t, s.Put(t.Context(), "server-keys/1", []byte("x")))
	err = s.Rotate(t.Context(), keyring.Rotation{}, quiet)
	require.ErrorContains(t, err, "let it print the new key too")
	require.NoError(t, os.WriteFile(keys, []byte(strings.Repeat("11", 32)+"\n"+strings.Repeat("22", 32)+"\n"), 0o600))
	require.NoError(t, s.Rotate(t.Context(), keyring.Rotation{}, quiet))
	state, err := s.readState(t.Context())
	require.NoError(t, err)
	require.Equal(t, map[string]int{state.Current: 1}, underKey(t, store))
	require.NotEqual(t, ring.First(), state.Current)
}
