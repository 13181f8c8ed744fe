package etcdstate

import (
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"burrow.dev/burrow/internal/config"
	"burrow.dev/burrow/internal/devstacktest"
	"burrow.dev/burrow/manifest"
)

// TestMain holds a lock, or rotates the master key, when it is started for that.
func TestMain(m *testing.M) {
	if text := os.Getenv(holderEnv); text != "" {
		if err := runHolder(text, os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if asked := os.Getenv(rotateFor); asked != "" {
		os.Exit(rotateAlone(asked))
	}
	goleak.VerifyTestMain(m)
}

// patience bounds every wait for something that happens by itself.
const patience = 20 * time.Second

func openStore(t *testing.T, endpoint string, opts Options) *Store {
	t.Helper()
	store, err := Open(config.Etcd{Endpoints: []string{endpoint}}, opts)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	return store
}

func newTestStore(t *testing.T) *Store {
	t.Helper()
	return openStore(t, devstacktest.Etcd(t), Options{})
}

func server(name, uid string) manifest.Record {
	return manifest.Record{
		APIVersion: manifest.APIVersion, Kind: manifest.KindServer,
		Metadata: manifest.RecordMeta{Metadata: manifest.Metadata{Name: name}, UID: uid},
		Spec:     []byte(`{}`), Status: manifest.Status{Phase: manifest.PhaseProvisioning},
	}
}

// cable is a TCP connection to etcd that can be cut.
type cable struct {
	listener net.Listener
	target   string
	wg       sync.WaitGroup

	mu    sync.Mutex
	cut   bool
	conns []net.Conn
}

func newCable(t *testing.T, endpoint string) *cable {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	c := &cable{listener: l, target: strings.TrimPrefix(endpoint, "http://")}
	c.wg.Go(c.accept)
	t.Cleanup(func() {
		_ = l.Close()
		c.setCut(true)
		c.wg.Wait()
	})
	return c
}

func (c *cable) endpoint() string { return "http://" + c.listener.Addr().String() }

// setCut ends all connections and refuses new ones, or lets them through again.
func (c *cable) setCut(cut bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cut = cut
	if cut {
		for _, conn := range c.conns {
			_ = conn.Close()
		}
		c.conns = nil
	}
}

func (c *cable) accept() {
	for {
		in, err := c.listener.Accept()
		if err != nil {
			return
		}
		out, err := net.Dial("tcp", c.target)
		c.mu.Lock()
		if err != nil || c.cut {
			_ = in.Close()
			if out != nil {
				_ = out.Close()
			}
		} else {
			c.conns = append(c.conns, in, out)
			for _, pair := range [][2]net.Conn{{in, out}, {out, in}} {
				c.wg.Go(func() {
					_, _ = io.Copy(pair[0], pair[1])
					_ = pair[0].Close()
					_ = pair[1].Close()
				})
			}
		}
		c.mu.Unlock()
	}
}
