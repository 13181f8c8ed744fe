package etcdstate

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"burrow.dev/burrow/internal/config"
	"burrow.dev/burrow/internal/devstacktest"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/internal/pki"
)

func TestOnlyAWorkersCertificateReachesEtcd(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	_, err := pki.Ensure(dir, pki.Options{GroupID: -1})
	require.NoError(t, err)
	process, err := devstacktest.Start(context.WithoutCancel(t.Context()), "serve", "--data-dir", t.TempDir(), "--tls-dir", dir,
		"--temporal-port", "0", "--ui-port", "0", "--etcd-port", "0")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, process.Stop()) })
	with := func(role string) error {
		s, err := Open(config.Etcd{Endpoints: []string{process.EtcdEndpoint}, TLS: pki.Files(dir, role)}, Options{})
		require.NoError(t, err)
		defer s.Close()
		_, err = s.AliveHosts(t.Context())
		return err
	}
	require.NoError(t, with("worker"))
	require.ErrorIs(t, with("client"), errs.ErrUnavailable)
	_, err = Open(config.Etcd{Endpoints: []string{process.EtcdEndpoint}, TLS: &config.TLS{CA: dir + "/absent"}}, Options{})
	require.ErrorContains(t, err, "read TLS files")
}
