package etcdstate

import (
	"context"
	"regexp"
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
	with := func(t *testing.T, files *config.TLS) (ask, doctor error) {
		s, err := Open(config.Etcd{Endpoints: []string{process.EtcdEndpoint}, TLS: files}, Options{})
		require.NoError(t, err)
		defer s.Close()
		_, err = s.AliveHosts(t.Context())
		health, _ := s.Health(t.Context())
		return err, health.Members[0].Err
	}
	ask, doctor := with(t, pki.Files(dir, "worker"))
	require.NoError(t, ask)
	require.NoError(t, doctor)
	other := t.TempDir()
	_, err = pki.Ensure(other, pki.Options{GroupID: -1})
	require.NoError(t, err)
	mixed := *pki.Files(other, "worker") // trusts etcd, and is a stranger to it
	mixed.CA = pki.Files(dir, "worker").CA
	for name, c := range map[string]struct {
		files      *config.TLS
		says, next string
	}{
		"etcd is a stranger":     {pki.Files(other, "worker"), "etcd shows a certificate that is not trusted", "etcd.endpoints"},
		"we are a stranger":      {&mixed, "etcd refuses this worker's certificate", "tls"},
		"we are no worker to it": {pki.Files(dir, "client"), "etcd refuses this worker's certificate", "tls"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ask, doctor := with(t, c.files)
			for _, err := range []error{ask, doctor} {
				require.ErrorIs(t, err, errs.ErrUnavailable)
				require.Equal(t, errs.Transient, errs.ClassOf(err), "it goes on when somebody has mended it")
			}
			// A request may see no more than a broken connection; its next step is then doctor.
			require.Regexp(t, regexp.QuoteMeta(c.says)+"|burrow doctor", ask.Error())
			var own *errs.Error
			require.ErrorAs(t, doctor, &own)
			require.ErrorContains(t, doctor, "ask status: "+c.says)
			require.Contains(t, own.Next, "worker.json")
			require.Contains(t, own.Next, c.next)
		})
	}
	_, err = Open(config.Etcd{Endpoints: []string{process.EtcdEndpoint}, TLS: &config.TLS{CA: dir + "/absent"}}, Options{})
	require.ErrorContains(t, err, "read TLS files")
}
