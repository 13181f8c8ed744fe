package imagestore

import (
	"context"
	"crypto/sha512"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"burrow.dev/burrow/internal/errs"
)

// publisher serves one file, and can be told to misbehave.
type publisher struct {
	body        []byte
	etag        string
	ignoreRange bool
	cut         func(request int) int // bytes of the answer's body before the connection breaks; -1: all
	requests    atomic.Int64
	ranged      atomic.Int64
}

func (p *publisher) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n := int(p.requests.Add(1))
	body, status := p.body, http.StatusOK
	var from int
	if spec := r.Header.Get("Range"); spec != "" {
		p.ranged.Add(1)
		_, err := fmt.Sscanf(spec, "bytes=%d-", &from)
		if err == nil && !p.ignoreRange && r.Header.Get("If-Range") == p.etag {
			if from >= len(body) {
				w.Header().Set("Content-Range", fmt.Sprintf("bytes */%d", len(body)))
				w.WriteHeader(http.StatusRequestedRangeNotSatisfiable)
				return
			}
			w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, len(body)-1, len(body)))
			body, status = body[from:], http.StatusPartialContent
		}
	}
	w.Header().Set("ETag", p.etag)
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	if p.cut != nil {
		if k := p.cut(n); k >= 0 && k < len(body) {
			_, _ = w.Write(body[:k])
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}
	}
	_, _ = w.Write(body)
}

func (p *publisher) start(t *testing.T) string {
	t.Helper()
	s := httptest.NewServer(p)
	t.Cleanup(s.Close)
	return s.URL + "/images/disk.qcow2"
}

func TestADownloadCutAtRandomOffsetsGoesOnWhereItEnded(t *testing.T) {
	body := append(make([]byte, 1), noise...)
	r := rand.New(rand.NewPCG(7, 7))
	p := &publisher{body: body, etag: `"v1"`, cut: func(n int) int {
		if n > 20 {
			return -1
		}
		return 1 + r.IntN(len(body)/25)
	}}
	got, err := testStore(t).fetchTo(t.Context(), Source{URL: p.start(t), Checksum: sum(body)})
	require.NoError(t, err)
	require.Equal(t, body, got)
	require.EqualValues(t, 21, p.requests.Load())
	require.EqualValues(t, 20, p.ranged.Load(), "every further attempt asks for the rest only")
}

func TestAnotherProcessGoesOnWithThePart(t *testing.T) {
	p := &publisher{body: noise, etag: `"v1"`, cut: func(int) int { return 20_000 }}
	url, s := p.start(t), testStore(t)
	ctx, cancel := context.WithCancel(t.Context())
	_, err := s.Fetch(ctx, "image test", Source{URL: url}, func(_ string, done, _ int64) {
		if done > 30_000 {
			cancel()
		}
	})
	require.ErrorIs(t, err, context.Canceled)

	p.cut = nil
	ranged := p.ranged.Load()
	next := New(Options{Dir: s.dir})
	t.Cleanup(next.client.CloseIdleConnections)
	got, err := next.fetchTo(t.Context(), Source{URL: url, Checksum: sum(noise)})
	require.NoError(t, err)
	require.Equal(t, noise, got)
	require.Equal(t, ranged+1, p.ranged.Load(), "it asks for the rest only")
}

func TestAFileThatChangedBetweenTwoAttemptsIsTakenWhole(t *testing.T) {
	p := &publisher{body: noise, etag: `"v1"`, cut: func(n int) int {
		if n == 1 {
			return 5000
		}
		return -1
	}}
	url := p.start(t)
	s := testStore(t)
	ctx, cancel := context.WithCancel(t.Context())
	_, err := s.Fetch(ctx, "image test", Source{URL: url}, func(string, int64, int64) { cancel() })
	require.ErrorIs(t, err, context.Canceled)

	p.body, p.etag = append([]byte{9, 0, 9}, noise...), `"v2"`
	got, err := s.fetchTo(t.Context(), Source{URL: url, Checksum: sum(p.body)})
	require.NoError(t, err)
	require.Equal(t, p.body, got)
}

func TestAServerThatIgnoresRangeIsReadFromTheStart(t *testing.T) {
	p := &publisher{body: noise, etag: `"v1"`, ignoreRange: true, cut: func(n int) int {
		if n < 3 {
			return 7000
		}
		return -1
	}}
	got, err := testStore(t).fetchTo(t.Context(), Source{URL: p.start(t)})
	require.NoError(t, err)
	require.Equal(t, noise, got)
}

func TestAPartWithoutValidatorIsNotTrusted(t *testing.T) {
	p := &publisher{body: noise, etag: "", cut: func(n int) int {
		if n == 1 {
			return 7000
		}
		return -1
	}}
	got, err := testStore(t).fetchTo(t.Context(), Source{URL: p.start(t)})
	require.NoError(t, err)
	require.Equal(t, noise, got)
	require.Zero(t, p.ranged.Load())
}

func TestACompletePartIsNotDownloadedAgain(t *testing.T) {
	p := &publisher{body: noise, etag: `"v1"`}
	url, s := p.start(t), testStore(t)
	for range 2 {
		got, err := s.fetchTo(t.Context(), Source{URL: url, Checksum: sum(noise)})
		require.NoError(t, err)
		require.Equal(t, noise, got)
	}
	require.EqualValues(t, 1, p.ranged.Load(), "the second time the server is only asked whether there is more")
}

func TestWhatIsNotTheImageEndsTheDownload(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("/page.qcow2", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "<!DOCTYPE html><html><body>Please log in</body></html>")
	})
	mux.HandleFunc("/text.qcow2", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "moved to another place, sorry") })
	mux.HandleFunc("/away", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Location", "file:///etc/shadow")
		w.WriteHeader(http.StatusFound)
	})
	mux.HandleFunc("/loop/", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, r.URL.Path+"x", http.StatusFound)
	})
	mux.HandleFunc("/secret", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) })
	mux.HandleFunc("/huge", func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Length", "9000000000000") })
	mux.HandleFunc("/disk", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(noise) })
	mux.HandleFunc("/SUMS", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintf(w, "%s  other\n", sum(noise)) })
	server := httptest.NewServer(mux)
	defer server.Close()
	for name, c := range map[string]struct {
		src   Source
		cause error
		says  string
	}{
		"web page with status 200": {Source{URL: server.URL + "/page.qcow2"}, errs.ErrInvalid, "web page"},
		"text":                     {Source{URL: server.URL + "/text.qcow2"}, errs.ErrInvalid, "web page"},
		"redirect loop":            {Source{URL: server.URL + "/loop/"}, errRedirects, "too many redirects"},
		"redirect to a file":       {Source{URL: server.URL + "/away"}, errs.ErrInvalid, "redirected to a file: address"},
		"missing":                  {Source{URL: server.URL + "/nothing"}, errs.ErrNotFound, "404"},
		"forbidden":                {Source{URL: server.URL + "/secret"}, nil, "403"},
		"too large":                {Source{URL: server.URL + "/huge"}, errs.ErrInvalid, "GiB"},
		"wrong checksum":           {Source{URL: server.URL + "/disk", Checksum: sum(nil)}, errs.ErrInvalid, sum(noise)},
		"malformed checksum":       {Source{URL: server.URL + "/disk", Checksum: "abc"}, errs.ErrInvalid, "checksum"},
		"not in the list":          {Source{URL: server.URL + "/disk", ChecksumURL: server.URL + "/SUMS"}, errs.ErrNotFound, "SUMS"},
		"no list":                  {Source{URL: server.URL + "/disk", ChecksumURL: server.URL + "/none"}, errs.ErrNotFound, "404"},
		"ftp":                      {Source{URL: "ftp://example.test/disk"}, errs.ErrInvalid, "http"},
		"no host":                  {Source{URL: "http:///disk"}, errs.ErrInvalid, "http"},
	} {
		t.Run(name, func(t *testing.T) {
			s := testStore(t)
			_, err := s.fetchTo(t.Context(), c.src)
			require.Error(t, err)
			require.Equal(t, errs.Permanent, errs.ClassOf(err), "%v", err)
			require.ErrorContains(t, err, c.says)
			require.ErrorContains(t, err, "image test")
			if c.cause != nil {
				require.ErrorIs(t, err, c.cause)
			}
		})
	}
}

func TestAServerOutOfReachIsTransientAndKeepsThePart(t *testing.T) {
	broken := &publisher{body: noise, etag: `"v1"`, cut: func(n int) int {
		if n == 1 {
			return 5000
		}
		return 0
	}}
	s := testStore(t)
	_, err := s.fetchTo(t.Context(), Source{URL: broken.start(t)})
	require.Equal(t, errs.Transient, errs.ClassOf(err))
	require.ErrorIs(t, err, errs.ErrUnavailable)
	parts, globErr := filepath.Glob(filepath.Join(s.downloadsDir(), "*.part"))
	require.NoError(t, globErr)
	require.Len(t, parts, 1)
	info, statErr := os.Stat(parts[0])
	require.NoError(t, statErr)
	require.NotZero(t, info.Size())
}

func TestAServerInTroubleIsAskedAgain(t *testing.T) {
	var asked atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if asked.Add(1) < 3 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		_, _ = w.Write(noise)
	}))
	defer server.Close()
	got, err := testStore(t).fetchTo(t.Context(), Source{URL: server.URL})
	require.NoError(t, err)
	require.Equal(t, noise, got)
}

func TestChecksumFromAListOfEitherKind(t *testing.T) {
	long := fmt.Sprintf("%x", sha512.Sum512(noise))
	for name, list := range map[string]string{
		"coreutils text":   sum(noise) + "  disk.qcow2\n" + sum(nil) + "  other.qcow2\n",
		"coreutils binary": sum(nil) + " *other\r\n" + sum(noise) + " *disk.qcow2\r\n",
		"with a folder":    sum(noise) + "  ./images/disk.qcow2\n",
		"SHA512SUMS":       long + "  disk.qcow2\n",
		"BSD, signed":      "-----BEGIN PGP SIGNED MESSAGE-----\nHash: SHA256\n\n# disk.qcow2: 12 bytes\nSHA256 (disk.qcow2) = " + sum(noise) + "\n-----BEGIN PGP SIGNATURE-----\n",
		"one digest":       long + "\n",
	} {
		t.Run(name, func(t *testing.T) {
			mux := http.NewServeMux()
			mux.HandleFunc("/disk.qcow2", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(noise) })
			mux.HandleFunc("/sums", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, list) })
			server := httptest.NewServer(mux)
			defer server.Close()
			s := testStore(t)
			_, err := s.fetchTo(t.Context(), Source{URL: server.URL + "/disk.qcow2", ChecksumURL: server.URL + "/sums"})
			require.NoError(t, err)
		})
	}
}

func TestOneDownloadAtATimeForAURL(t *testing.T) {
	p := &publisher{body: noise, etag: `"v1"`}
	url, s := p.start(t), testStore(t)
	first, err := s.Fetch(t.Context(), "image test", Source{URL: url}, quiet)
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, err = s.Fetch(ctx, "image test", Source{URL: url}, quiet)
	require.True(t, errors.Is(err, context.DeadlineExceeded), "the second waits: %v", err)
	first.Close()
	second, err := s.Fetch(t.Context(), "image test", Source{URL: url}, quiet)
	require.NoError(t, err)
	second.Close()
}

func FuzzFindChecksum(f *testing.F) {
	f.Add(sum(noise)+"  disk.qcow2\n", "disk.qcow2")
	f.Add("SHA256 (disk.qcow2) = "+sum(nil), "disk.qcow2")
	f.Add("<html>", "x")
	f.Fuzz(func(t *testing.T, list, name string) {
		c, err := FindChecksum(strings.NewReader(list), name)
		if err != nil {
			require.Empty(t, c)
			return
		}
		_, err = ParseChecksum(string(c))
		require.NoError(t, err, "what is found is a checksum")
	})
}

func FuzzContentRange(f *testing.F) {
	f.Add("bytes 5-9/10")
	f.Add("bytes */10")
	f.Fuzz(func(t *testing.T, text string) {
		start, total, err := contentRange(text)
		if err == nil {
			require.GreaterOrEqual(t, start, int64(0))
			require.GreaterOrEqual(t, total, int64(-1))
		}
	})
}
