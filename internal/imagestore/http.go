package imagestore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/internal/imagestore/diskfile"
)

const (
	maxRedirects = 10
	// answerTimeout is how long a server may take to begin its answer.
	answerTimeout = 30 * time.Second
	// stallTimeout ends an attempt that has brought no byte for so long.
	stallTimeout = 60 * time.Second
	maxDownload  = 256 << 30 // bytes; a published image of this size is a mistake
	spareBytes   = 256 << 20 // left free on the host's disk
	readSize     = 256 << 10
)

var errRedirects = errors.New("too many redirects")

// newClient makes the downloads' client. It follows a bounded number of redirects and
// never from https down to http.
func newClient() *http.Client {
	return &http.Client{
		Transport: &http.Transport{
			Proxy:                 http.ProxyFromEnvironment,
			DialContext:           (&net.Dialer{Timeout: answerTimeout, KeepAlive: answerTimeout}).DialContext,
			TLSHandshakeTimeout:   answerTimeout,
			ResponseHeaderTimeout: answerTimeout,
			DisableCompression:    true, // bytes as published: the checksum is of them
			ForceAttemptHTTP2:     true,
		},
		CheckRedirect: checkRedirect,
	}
}

func checkRedirect(req *http.Request, via []*http.Request) error {
	if len(via) > maxRedirects {
		return errRedirects
	}
	if req.URL.Scheme != "https" && req.URL.Scheme != "http" {
		return fmt.Errorf("%w: redirected to a %s: address", errs.ErrInvalid, req.URL.Scheme)
	}
	if req.URL.Scheme != "https" && via[len(via)-1].URL.Scheme == "https" {
		return fmt.Errorf("%w: redirected from https to %s", errs.ErrInvalid, req.URL.Scheme)
	}
	return nil
}

// lastingError is an answer that another attempt would get again.
type lastingError struct {
	class errs.Class
	err   error
	next  string
}

func (e *lastingError) Error() string { return e.err.Error() }
func (e *lastingError) Unwrap() error { return e.err }

func lasting(err error, next string) error { return &lastingError{errs.Permanent, err, next} }

// get asks for a URL from an offset on. validator ties the rest to what is already here.
func (s *Store) get(ctx context.Context, address string, offset int64, validator string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, lasting(err, "")
	}
	req.Header.Set("User-Agent", "burrow")
	req.Header.Set("Accept-Encoding", "identity")
	if offset > 0 {
		req.Header.Set("Range", "bytes="+strconv.FormatInt(offset, 10)+"-")
		req.Header.Set("If-Range", validator)
	}
	res, err := s.client.Do(req)
	switch {
	case errors.Is(err, errRedirects), errors.Is(err, errs.ErrInvalid):
		return nil, lasting(err, "give the address that the file is really at")
	case err != nil:
		return nil, err
	}
	return res, nil
}

// statusError is what an answer other than the file means.
func statusError(res *http.Response) error {
	err := fmt.Errorf("%s answered %s", res.Request.URL.Redacted(), res.Status)
	switch {
	case res.StatusCode == http.StatusTooManyRequests, res.StatusCode == http.StatusRequestTimeout, res.StatusCode >= 500:
		return err
	case res.StatusCode == http.StatusNotFound, res.StatusCode == http.StatusGone:
		return lasting(fmt.Errorf("%w: %w", errs.ErrNotFound, err), "check the address")
	}
	return lasting(err, "check the address, and whether it asks for a login")
}

// attempt makes one request and appends what it brings to the part. nil means that the
// part is complete.
func (s *Store) attempt(ctx context.Context, address string, p *part, progress func(done, total int64)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	offset, validator := p.resumeAt()
	res, err := s.get(ctx, address, offset, validator)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	total := int64(-1)
	switch res.StatusCode {
	case http.StatusOK:
		offset, total = 0, res.ContentLength
	case http.StatusPartialContent:
		var start int64
		if start, total, err = contentRange(res.Header.Get("Content-Range")); err != nil || start != offset {
			p.remove()
			return fmt.Errorf("server answered with range %q for offset %d", res.Header.Get("Content-Range"), offset)
		}
	case http.StatusRequestedRangeNotSatisfiable:
		if _, total, err := contentRange(res.Header.Get("Content-Range")); err == nil && total == offset {
			return nil
		}
		p.remove()
		return statusError(res)
	default:
		return statusError(res)
	}
	if err := p.begin(res, offset, total); err != nil {
		return err
	}
	return p.receive(res.Body, offset, total, progress, time.AfterFunc(stallTimeout, cancel))
}

// receive writes a body to the part. stall is put off with each byte that comes.
func (p *part) receive(body io.Reader, offset, total int64, progress func(done, total int64), stall *time.Timer) error {
	defer stall.Stop()
	f, err := os.OpenFile(p.path, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := f.Truncate(offset); err != nil {
		return err
	}
	buf := make([]byte, readSize)
	for done := offset; ; {
		n, rerr := body.Read(buf)
		if n > 0 {
			stall.Reset(stallTimeout)
			if done == 0 && looksLikeText(buf[:n]) {
				return lasting(fmt.Errorf("%w: the server answered with a text or web page", errs.ErrInvalid), "give the address of the image file itself")
			}
			if _, err := f.WriteAt(buf[:n], done); err != nil {
				return err
			}
			done += int64(n)
			progress(done, max(total, 0))
		}
		switch {
		case done > maxDownload:
			return lasting(fmt.Errorf("%w: more than %d GiB", errs.ErrInvalid, int64(maxDownload)>>30), "")
		case rerr == io.EOF && (total < 0 || done == total):
			return f.Sync()
		case rerr == io.EOF:
			return fmt.Errorf("%w after %d of %d bytes", io.ErrUnexpectedEOF, done, total)
		case rerr != nil:
			return rerr
		}
	}
}

// looksLikeText reports whether a file begins like a page, not like a disk or an archive.
func looksLikeText(b []byte) bool {
	return strings.HasPrefix(http.DetectContentType(b), "text/")
}

// contentRange reads "bytes 5-9/10" and "bytes */10"; total is -1 for "*".
func contentRange(text string) (start, total int64, err error) {
	fail := func() (int64, int64, error) {
		return 0, 0, fmt.Errorf("%w: content range %.80q", errs.ErrInvalid, text)
	}
	rest, ok := strings.CutPrefix(text, "bytes ")
	span, all, ok2 := strings.Cut(rest, "/")
	if !ok || !ok2 {
		return fail()
	}
	total = -1
	if all != "*" {
		if total, err = strconv.ParseInt(all, 10, 64); err != nil || total < 0 {
			return fail()
		}
	}
	if span == "*" {
		return 0, total, nil
	}
	first, _, _ := strings.Cut(span, "-")
	if start, err = strconv.ParseInt(first, 10, 64); err != nil || start < 0 {
		return fail()
	}
	return start, total, nil
}

// checkRoom refuses a file that the disk cannot hold, before its first byte.
func checkRoom(dir string, need int64) error {
	free, err := diskfile.Free(dir)
	if err != nil {
		return err
	}
	if need+spareBytes > free {
		return &lastingError{errs.Operator, fmt.Errorf("%w: %d MiB are needed in %s, %d MiB are free", errs.ErrNoSpace, (need+spareBytes)>>20, dir, free>>20), "make room there"}
	}
	return nil
}

func isDiskError(err error) bool {
	var p *fs.PathError
	return errors.As(err, &p) || errors.Is(err, syscall.ENOSPC)
}

// fetchChecksum finds a file's checksum in the list that stands at a URL.
func (s *Store) fetchChecksum(ctx context.Context, address, name string) (Checksum, error) {
	ctx, cancel := context.WithTimeout(ctx, stallTimeout)
	defer cancel()
	res, err := s.get(ctx, address, 0, "")
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return "", statusError(res)
	}
	text, err := io.ReadAll(io.LimitReader(res.Body, maxChecksumFile))
	if err != nil {
		return "", err
	}
	sum, err := FindChecksum(strings.NewReader(string(text)), name)
	if err != nil {
		return "", lasting(fmt.Errorf("%s: %w", address, err), "give the checksum itself")
	}
	return sum, nil
}

func errTooLarge(total int64) error {
	return fmt.Errorf("%w: %d GiB announced", errs.ErrInvalid, total>>30)
}
