package addresses

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/netip"
	"os"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"burrow.dev/burrow/internal/addrspace"
	"burrow.dev/burrow/internal/config"
	"burrow.dev/burrow/internal/etcdstate"
)

// workerEnv holds the orders of a worker process, as JSON.
const workerEnv = "BURROW_TEST_ADDRESS_WORKER"

// orders say what a worker process does.
type orders struct {
	Name       string
	Endpoint   string
	Prefix     string
	NetworkUID string
	Goroutines int
	// LoseOneIn requests' responses after etcd has done what they asked.
	LoseOneIn int
}

// note is one line of a worker's story: a call, or how it ended.
type note struct {
	Owner   string
	Release bool
	Done    bool
	Addr    netip.Addr // of a finished allocation
	At      int64      // nanoseconds
}

// runWorker allocates and releases until its standard input ends. It never gives up on an
// owner: a call that failed is made again, so that its story has an end unless it is killed.
func runWorker(text string, out io.Writer) error {
	var o orders
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		return err
	}
	lose := func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		err := invoke(ctx, method, req, reply, cc, opts...)
		if err == nil && rand.N(o.LoseOneIn) == 0 {
			return status.Error(codes.Unavailable, "the response was lost")
		}
		return err
	}
	store, err := etcdstate.Open(config.Etcd{Endpoints: []string{o.Endpoint}, Prefix: o.Prefix},
		etcdstate.Options{LockTTL: workerLockTTL, DialOptions: []grpc.DialOption{grpc.WithChainUnaryInterceptor(lose)}})
	if err != nil {
		return err
	}
	defer store.Close()
	a := New(store, Options{Quarantine: none})
	defer a.Close()
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	var mu sync.Mutex
	w := bufio.NewWriter(out)
	tell := func(n note) {
		mu.Lock()
		defer mu.Unlock()
		n.At = time.Now().UnixNano()
		line, _ := json.Marshal(n)
		_, _ = w.Write(append(line, '\n'))
		_ = w.Flush()
	}
	var wg sync.WaitGroup
	for g := range o.Goroutines {
		wg.Go(func() {
			for r := 0; ctx.Err() == nil; r++ {
				life(ctx, a, o.NetworkUID, fmt.Sprintf("%s-%d-%d", o.Name, g, r), tell)
			}
		})
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
	stop()
	wg.Wait()
	return nil
}

// life is one owner's: it gets an address and gives it back.
func life(ctx context.Context, a *Allocator, network, owner string, tell func(note)) {
	tell(note{Owner: owner})
	// Not ctx: what was begun is brought to its end.
	for {
		got, err := a.Allocate(context.WithoutCancel(ctx), network, []addrspace.Want{{Owner: owner + "/eth/0"}})
		if err == nil {
			tell(note{Owner: owner, Done: true, Addr: got[0].Addr()})
			break
		}
	}
	tell(note{Owner: owner, Release: true})
	for a.Release(context.WithoutCancel(ctx), network, owner+"/") != nil {
	}
	tell(note{Owner: owner, Release: true, Done: true})
}
