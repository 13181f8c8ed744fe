package keys

import (
	"crypto/ed25519"
	"encoding/pem"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"golang.org/x/crypto/ssh"

	"burrow.dev/burrow/internal/errs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// key gives an authorized_keys line made from a seed byte.
func key(t testing.TB, seed byte) string {
	t.Helper()
	priv := ed25519.NewKeyFromSeed([]byte(strings.Repeat(string(rune(seed)), 32)))
	pub, err := ssh.NewPublicKey(priv.Public())
	require.NoError(t, err)
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(pub)))
}

// keyServer is a real HTTPS server with a CA of its own; the options trust it.
func keyServer(t *testing.T, h http.HandlerFunc) (*httptest.Server, Options) {
	t.Helper()
	srv := httptest.NewTLSServer(h)
	t.Cleanup(srv.Close)
	file := filepath.Join(t.TempDir(), "ca.pem")
	block := &pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw}
	require.NoError(t, os.WriteFile(file, pem.EncodeToMemory(block), 0o600))
	return srv, Options{AllowPrivate: true, RootCAFile: file}
}

func fetch(t *testing.T, o Options, in FetchIn) (FetchOut, error) {
	t.Helper()
	a, err := New(o)
	require.NoError(t, err)
	in.Owner = "server/db"
	return a.Fetch(t.Context(), in)
}

func TestKeysAreParsedNormalisedAndListedOnce(t *testing.T) {
	one, two := key(t, 'a'), key(t, 'b')
	srv, o := keyServer(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("# people\r\n\r\n  " + two + "   two@home\x1b[31m\r\n" + one + "\n" +
			`from="10.0.0.0/8",no-pty ` + key(t, 'c') + " c\n"))
	})
	out, err := fetch(t, o, FetchIn{PublicKey: []string{one + " one"}, URLs: []string{srv.URL + "/x.keys"}})
	require.NoError(t, err)
	require.Equal(t, []string{one + " one", two + " two@home[31m", `from="10.0.0.0/8",no-pty ` + key(t, 'c') + " c"}, out.Keys)
}

func TestFetchOfNothingIsNothing(t *testing.T) {
	out, err := fetch(t, Options{}, FetchIn{})
	require.NoError(t, err)
	require.Empty(t, out.Keys)
}

func TestAURLWhoseKeysAreAllKnownIsFine(t *testing.T) {
	srv, o := keyServer(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(key(t, 'a'))) })
	out, err := fetch(t, o, FetchIn{URLs: []string{srv.URL + "/1", srv.URL + "/2"}})
	require.NoError(t, err)
	require.Len(t, out.Keys, 1)
}

func TestFailuresHaveTheClassAndSayWhatToDo(t *testing.T) {
	answer := func(code int, kind, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			w.WriteHeader(code)
			_, _ = w.Write([]byte(body))
		}
	}
	cases := map[string]struct {
		handler http.HandlerFunc
		class   errs.Class
		says    string
	}{
		"unknown user":       {answer(404, "text/plain", "Not Found"), errs.Permanent, "404 Not Found; check the user's name"},
		"forbidden":          {answer(403, "text/plain", ""), errs.Permanent, "403 Forbidden"},
		"HTML page":          {answer(200, "text/html; charset=utf-8", "<html>"), errs.Permanent, "HTML page"},
		"HTML as plain text": {answer(200, "text/plain", "\n <!DOCTYPE html>"), errs.Permanent, "HTML page"},
		"not a key":          {answer(200, "text/plain", "\nssh-rsa AAAA\n"), errs.Permanent, "line 2 is not an SSH public key"},
		"private key":        {answer(200, "text/plain", "-----BEGIN OPENSSH PRIVATE KEY-----\nabc"), errs.Permanent, "line 1 is not"},
		"YAML":               {answer(200, "text/plain", "- runcmd: [x]"), errs.Permanent, "line 1 is not"},
		"no key":             {answer(200, "text/plain", "\n# none\n"), errs.Permanent, "lists no key"},
		"too long, not cut":  {answer(200, "text/plain", strings.Repeat(key(t, 'a')+"\n", 4000)), errs.Permanent, "more than 256 KiB"},
		"server error":       {answer(503, "text/plain", ""), errs.Transient, "503 Service Unavailable"},
		"too many requests":  {answer(429, "text/plain", ""), errs.Transient, "429"},
		"redirects for ever": {func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/again", http.StatusFound) }, errs.Permanent, "too many redirects"},
		"redirect to http": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://127.0.0.1:1/", http.StatusFound)
		}, errs.Permanent, "only https"},
		"redirect to a file": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "file:///etc/passwd", http.StatusFound)
		}, errs.Permanent, "only https"},
		"broken off": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "99")
			_, _ = w.Write([]byte("x"))
		}, errs.Transient, "broke off"},
		"options with escape": {answer(200, "text/plain", "command=\"a\x1b\" "+key(t, 'a')), errs.Permanent, "control characters"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			srv, o := keyServer(t, c.handler)
			_, err := fetch(t, o, FetchIn{URLs: []string{strings.Replace(srv.URL, "https://", "https://user:secret@", 1) + "/x.keys?token=secret"}})
			require.ErrorContains(t, err, c.says)
			require.ErrorContains(t, err, "server/db: fetch login keys from "+srv.URL+"/x.keys")
			require.NotContains(t, err.Error(), "secret")
			require.NotContains(t, err.Error(), "\x1b")
			require.Equal(t, c.class, errs.ClassOf(err))
		})
	}
}

func TestConnectionFailuresHaveTheClass(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	gone := "https://" + l.Addr().String()
	require.NoError(t, l.Close())
	_, err = fetch(t, Options{AllowPrivate: true}, FetchIn{URLs: []string{gone}})
	require.ErrorContains(t, err, "connection refused")
	require.Equal(t, errs.Transient, errs.ClassOf(err))

	srv, o := keyServer(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(key(t, 'a'))) })
	_, err = fetch(t, Options{AllowPrivate: true}, FetchIn{URLs: []string{srv.URL}})
	require.ErrorContains(t, err, "site's own CA")
	require.Equal(t, errs.Permanent, errs.ClassOf(err))

	o.AllowPrivate = false
	_, err = fetch(t, o, FetchIn{URLs: []string{srv.URL}})
	require.ErrorContains(t, err, "127.0.0.1 is not a public address")
	require.Equal(t, errs.Permanent, errs.ClassOf(err))

	for _, bad := range []string{"http://example.com/x", "ftp://example.com/x", "file:///etc/shadow", "x.keys", "https://", "::"} {
		_, err = fetch(t, Options{}, FetchIn{URLs: []string{bad}})
		require.Equal(t, errs.Permanent, errs.ClassOf(err), bad)
	}
}

func TestANameThatDoesNotResolveIsTriedAgain(t *testing.T) {
	lookup := &net.DNSError{Err: "no such host", Name: "keys.example", IsNotFound: true}
	err := about("server/db", "https://keys.example/x", classifyTransport(t.Context(), &url.Error{Op: "Get", Err: lookup}))
	require.Equal(t, errs.Transient, errs.ClassOf(err))
	require.ErrorContains(t, err, `no such host "keys.example"; check the host's name in spec.auth.url`)
}

func TestUnchangedKeysAreNotDownloadedAgain(t *testing.T) {
	var full, unchanged atomic.Int32
	srv, o := keyServer(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("If-None-Match") == `"v1"` {
			unchanged.Add(1)
			w.WriteHeader(http.StatusNotModified)
			return
		}
		full.Add(1)
		w.Header().Set("ETag", `"v1"`)
		_, _ = w.Write([]byte(key(t, 'a')))
	})
	a, err := New(o)
	require.NoError(t, err)
	for range 3 {
		out, err := a.Fetch(t.Context(), FetchIn{Owner: "server/db", URLs: []string{srv.URL}})
		require.NoError(t, err)
		require.Equal(t, []string{key(t, 'a')}, out.Keys)
	}
	require.EqualValues(t, 1, full.Load())
	require.EqualValues(t, 2, unchanged.Load())
}

func TestOnlyPublicAddressesArePublic(t *testing.T) {
	for addr, want := range map[string]bool{
		"140.82.112.3": true, "2606:50c0:8000::153": true, "::ffff:140.82.112.3": true,
		"127.0.0.1": false, "10.1.2.3": false, "172.16.0.1": false, "192.168.1.1": false, "169.254.169.254": false, "100.64.0.1": false,
		"0.0.0.0": false, "224.0.0.1": false, "255.255.255.255": false, "::1": false, "fe80::1%eth0": false, "fd00::1": false,
		"::ffff:127.0.0.1": false, "64:ff9b::7f00:1": false, "2002:7f00:1::": false, "::127.0.0.1": false, "ff02::1": false,
	} {
		require.Equal(t, want, public(netip.MustParseAddr(addr)), addr)
	}
}

func TestNewRefusesAUselessCAFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ca.pem")
	_, err := New(Options{RootCAFile: file})
	require.ErrorContains(t, err, "no such file")
	require.NoError(t, os.WriteFile(file, []byte("x"), 0o600))
	_, err = New(Options{RootCAFile: file})
	require.ErrorContains(t, err, "no PEM certificate")
}

func FuzzLines(f *testing.F) {
	f.Add(key(f, 'a') + " comment\n# x\n")
	f.Add(`command="x y" ` + key(f, 'b'))
	f.Fuzz(func(t *testing.T, text string) {
		var l lines
		if l.parse(text) != nil {
			return
		}
		// What comes out is clean and parses to itself.
		for _, line := range l.keys {
			require.Equal(t, printable(line), line)
			var again lines
			require.NoError(t, again.parse(line))
			require.Equal(t, []string{line}, again.keys)
		}
	})
}
