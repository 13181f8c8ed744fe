package keys

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"os"
	"time"

	"burrow.dev/burrow/internal/errs"
)

const (
	// requestTimeout bounds one URL, redirects included: a key list is a few KiB, and a
	// server that is slower than this is tried again.
	requestTimeout = 10 * time.Second
	// maxBytes bounds a key list: 256 KiB are some 300 RSA keys.
	maxBytes = 256 << 10
	// maxRedirects bounds how often a key server may send us elsewhere.
	maxRedirects = 5
)

// Options say what a key server may be.
type Options struct {
	// AllowHTTP accepts http:// URLs too; default https only.
	AllowHTTP bool
	// AllowPrivate accepts servers at loopback, private, link-local and other addresses
	// that are not on the public Internet; default they are refused, also after redirects.
	AllowPrivate bool
	// RootCAFile is a PEM file of certificate authorities trusted beside the system's.
	RootCAFile string
}

// Activities fetch keys. Safe for concurrent use.
type Activities struct {
	client *http.Client
	allow  Options
	cache  *cache
}

// New makes the activities. A RootCAFile that cannot be read or holds no certificate is an error.
func New(o Options) (*Activities, error) {
	roots, err := rootCAs(o.RootCAFile)
	if err != nil {
		return nil, err
	}
	a := &Activities{allow: o, cache: newCache()}
	transport := &http.Transport{
		DialContext:     dialer(o.AllowPrivate).DialContext,
		TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
		// One request now and then: an idle connection would only outlive its use.
		DisableKeepAlives:      true,
		TLSHandshakeTimeout:    requestTimeout,
		MaxResponseHeaderBytes: 64 << 10,
	}
	a.client = &http.Client{Transport: transport, Timeout: requestTimeout, CheckRedirect: a.checkRedirect}
	return a, nil
}

// rootCAs gives the system's authorities and those of file; nil means the system's.
func rootCAs(file string) (*x509.CertPool, error) {
	if file == "" {
		return nil, nil
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	pem, err := os.ReadFile(file)
	if err != nil {
		return nil, errs.NewPermanent("key server CA "+file, "read", err, "")
	}
	if !pool.AppendCertsFromPEM(pem) {
		return nil, errs.NewPermanent("key server CA "+file, "read", errs.Reason("no PEM certificate in it"), "")
	}
	return pool, nil
}

// Fetch gives the authorized_keys lines of all sources: those of in.PublicKey first, then
// those of each URL in order, each key once. See FetchOut for the errors.
func (a *Activities) Fetch(ctx context.Context, in FetchIn) (FetchOut, error) {
	var list lines
	for i, text := range in.PublicKey {
		if err := list.parse(text); err != nil {
			return FetchOut{}, errs.NewPermanent(in.Owner, "read spec.auth.publicKey", errs.Reason("entry %d: %w", i+1, err),
				"give a line as it stands in authorized_keys, or file:PATH of a .pub file")
		}
	}
	for _, url := range in.URLs {
		text, err := a.get(ctx, url)
		if err != nil {
			return FetchOut{}, about(in.Owner, url, err)
		}
		before := len(list.keys) + list.repeated
		if err := list.parse(text); err != nil {
			return FetchOut{}, about(in.Owner, url, permanent(err, "check that the URL gives plain authorized_keys lines"))
		}
		if len(list.keys)+list.repeated == before {
			return FetchOut{}, about(in.Owner, url, permanent(errs.Reason("it lists no key"),
				"add a key there, or use spec.auth.publicKey"))
		}
	}
	return FetchOut{Keys: list.keys}, nil
}
