package keys

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"syscall"

	"burrow.dev/burrow/internal/errs"
)

var (
	errPrivate  = errors.New("not a public address")
	errScheme   = errors.New("only https is allowed")
	errRedirect = errors.New("too many redirects")
)

// fault is an error with the class and the next step it will be reported with.
type fault struct {
	class errs.Class
	next  string
	err   error
}

func (f *fault) Error() string { return f.err.Error() }
func (f *fault) Unwrap() error { return f.err }

func permanent(err error, next string) error {
	return &fault{class: errs.Permanent, next: next, err: err}
}

// about names the owner and the source of a failure. The URL is shown without user and query.
func about(owner, source string, err error) error {
	class, next := errs.Transient, ""
	var f *fault
	if errors.As(err, &f) {
		class, next = f.class, f.next
	}
	return errs.New(class, owner, "fetch login keys from "+shown(source), err, next)
}

func shown(source string) string {
	u, err := url.Parse(source)
	if err != nil {
		return "a URL that does not parse"
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}

// get fetches the text behind a URL, or takes it from the cache when the server says that
// it has not changed.
func (a *Activities) get(ctx context.Context, source string) (string, error) {
	u, err := url.Parse(source)
	if err != nil || u.Host == "" {
		return "", permanent(errors.New("not a URL"), "write it as https://host/path")
	}
	if err := a.checkScheme(u); err != nil {
		return "", permanent(err, "use https, or set keys.allowHTTP in worker.json and restart burrow")
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return "", permanent(errors.New("not a URL"), "")
	}
	req.Header.Set("Accept", "text/plain")
	req.Header.Set("User-Agent", "burrow")
	known, cached := a.cache.get(source)
	if cached {
		req.Header.Set("If-None-Match", known.etag)
	}
	resp, err := a.client.Do(req)
	if err != nil {
		return "", classifyTransport(ctx, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusNotModified && cached {
		return known.text, nil
	}
	text, err := read(resp)
	if err != nil {
		return "", err
	}
	a.cache.put(source, resp.Header.Get("ETag"), text)
	return text, nil
}

// read takes the body of an answer that may hold keys.
func read(resp *http.Response) (string, error) {
	switch code := resp.StatusCode; {
	case code == http.StatusOK:
	case code == http.StatusNotFound, code == http.StatusGone:
		return "", permanent(fmt.Errorf("the server answers %s", status(code)), "check the user's name in spec.auth.url")
	case code == http.StatusTooManyRequests, code == http.StatusRequestTimeout, code >= 500:
		return "", fmt.Errorf("the server answers %s", status(code))
	default:
		return "", permanent(fmt.Errorf("the server answers %s", status(code)), "check spec.auth.url")
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxBytes+1))
	if err != nil {
		return "", fmt.Errorf("the answer broke off: %w", err)
	}
	if len(body) > maxBytes {
		return "", permanent(fmt.Errorf("more than %d KiB", maxBytes>>10), "a key list is shorter; check spec.auth.url")
	}
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if kind == "text/html" || kind == "application/xhtml+xml" || bytes.HasPrefix(bytes.TrimSpace(body), []byte("<")) {
		return "", permanent(errors.New("it is an HTML page, not a key list"), "use the URL of the raw text, as https://github.com/USER.keys")
	}
	return string(body), nil
}

// status gives "404 Not Found" in our own words, not the server's.
func status(code int) string {
	return strings.TrimSpace(fmt.Sprintf("%d %s", code, http.StatusText(code)))
}

func (a *Activities) checkScheme(u *url.URL) error {
	if u.Scheme == "https" || u.Scheme == "http" && a.allow.AllowHTTP {
		return nil
	}
	return errScheme
}

func (a *Activities) checkRedirect(req *http.Request, via []*http.Request) error {
	if len(via) > maxRedirects {
		return errRedirect
	}
	return a.checkScheme(req.URL)
}

// classifyTransport says which failures of a connection another try cannot mend.
func classifyTransport(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var ue *url.Error
	if errors.As(err, &ue) {
		err = ue.Err // without the URL, which is named once, cleaned
	}
	var dns *net.DNSError
	var cert *tls.CertificateVerificationError
	switch {
	case errors.Is(err, errPrivate):
		return permanent(err, "allow private key servers in the worker's configuration if this one is yours")
	case errors.Is(err, errScheme), errors.Is(err, errRedirect):
		return permanent(err, "check where the URL leads")
	case errors.As(err, &dns) && dns.IsNotFound:
		// Resolvers say so of a name that is right, too, while the network comes up.
		return &fault{class: errs.Transient, next: "check the host's name in spec.auth.url", err: fmt.Errorf("no such host %q", dns.Name)}
	case errors.As(err, &cert):
		return permanent(cert, "name the site's own CA in the worker's configuration")
	}
	return err
}

// dialer refuses addresses that are not public. It sees the address that is really
// dialled, so a name that resolves to another one a moment later gains nothing.
func dialer(allowPrivate bool) *net.Dialer {
	d := &net.Dialer{Timeout: requestTimeout}
	if allowPrivate {
		return d
	}
	d.Control = func(_, address string, _ syscall.RawConn) error {
		ap, err := netip.ParseAddrPort(address)
		if err != nil {
			return err
		}
		if !public(ap.Addr()) {
			return fmt.Errorf("%s is %w", ap.Addr(), errPrivate)
		}
		return nil
	}
	return d
}

// reserved are ranges that netip has no predicate for (IANA special-purpose registries).
var reserved = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("192.0.0.0/24"),
	netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("198.18.0.0/15"), netip.MustParsePrefix("198.51.100.0/24"),
	netip.MustParsePrefix("203.0.113.0/24"), netip.MustParsePrefix("240.0.0.0/4"),
	// IPv6 forms that carry an IPv4 address, which could be a private one: NAT64, 6to4, Teredo.
	netip.MustParsePrefix("64:ff9b::/96"), netip.MustParsePrefix("64:ff9b:1::/48"), netip.MustParsePrefix("2002::/16"),
	netip.MustParsePrefix("2001::/32"), netip.MustParsePrefix("2001:db8::/32"), netip.MustParsePrefix("::/96"),
}

func public(a netip.Addr) bool {
	a = a.Unmap().WithZone("")
	if !a.IsGlobalUnicast() || a.IsPrivate() {
		return false
	}
	for _, p := range reserved {
		if p.Contains(a) {
			return false
		}
	}
	return true
}
