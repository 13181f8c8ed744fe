package imagestore

import (
	"context"
	"errors"
	"fmt"
	"hash"
	"net/url"
	"os"
	"path"
	"time"

	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/internal/imagestore/diskfile"
)

const (
	// retryPause doubles after each attempt that brought nothing.
	retryPause = 500 * time.Millisecond
	// fruitlessAttempts in a row end a download (Transient): the part stays, and the
	// activity's own retries go on from there.
	fruitlessAttempts = 4
	// partAge is when a part that nobody asked for again is removed.
	partAge = 7 * 24 * time.Hour
)

// Source is an image on the network.
type Source struct {
	URL         string // http or https
	Checksum    string // SHA-256 or SHA-512 in hex of the file as published; "" for none
	ChecksumURL string // a file that lists it (SHA256SUMS, SHA512SUMS, BSD format, one digest)
}

// Download is a complete file whose checksum, if any was given, is right. The caller
// holds its lock until Close.
type Download struct {
	Path   string
	part   *part
	unlock func()
}

// Discard removes the file: it has been installed, or is no image.
func (d *Download) Discard() { d.part.remove() }

// Close lets others have the file.
func (d *Download) Close() { d.unlock() }

// Fetch downloads a source into the cache folder, going on where an earlier try ended.
// One caller at a time has a URL; others wait. Errors: Permanent for a wrong checksum, a
// web page, a missing file, a loop of redirects; Operator for a full disk; Transient for
// the network.
func (s *Store) Fetch(ctx context.Context, object string, src Source, report Report) (*Download, error) {
	address, err := parseURL(object, src.URL)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(s.downloadsDir(), 0o700); err != nil {
		return nil, diskError(object, "download", err)
	}
	p := newPart(s.downloadsDir(), src.URL)
	unlock, err := diskfile.Lock(ctx, p.path+".lock")
	if err != nil {
		return nil, diskError(object, "download", err)
	}
	s.removeOldParts()
	d := &Download{Path: p.path, part: p, unlock: unlock}
	if err := s.fetchVerified(ctx, object, src, path.Base(address.Path), p, report); err != nil {
		unlock()
		return nil, err
	}
	return d, nil
}

// fetchVerified downloads and compares. A wrong checksum of a file that was put together
// from several answers, or that changed while its checksum was asked for, deserves one
// try from the start.
func (s *Store) fetchVerified(ctx context.Context, object string, src Source, name string, p *part, report Report) error {
	for again := true; ; again = false {
		want, err := s.wanted(ctx, object, src, name)
		if err != nil {
			return err
		}
		sum := Checksum("").hasher()
		if want != "" {
			sum = want.hasher()
		}
		if err := s.download(ctx, object, src.URL, p, report); err != nil {
			return err
		}
		if err := digestInto(ctx, sum, p.path, report); err != nil {
			return diskError(object, "verify", err)
		}
		if want == "" || want.matches(sum) {
			return nil
		}
		p.remove()
		if !again {
			return errs.NewPermanent(object, "download",
				fmt.Errorf("%w: checksum of %s is %x, expected %s", errs.ErrInvalid, src.URL, sum.Sum(nil), want),
				"check the checksum, or whether the file was replaced or tampered with")
		}
	}
}

func digestInto(ctx context.Context, sum hash.Hash, path string, report Report) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	_, err = diskfile.Copy(ctx, sum, f, func(done int64) { report("verify", done, info.Size()) })
	return err
}

// wanted is the checksum the file must have; "" when none was given.
func (s *Store) wanted(ctx context.Context, object string, src Source, name string) (Checksum, error) {
	if src.Checksum != "" {
		sum, err := ParseChecksum(src.Checksum)
		if err != nil {
			return "", errs.NewPermanent(object, "download", err, "give the 64 or 128 hex digits that the publisher names")
		}
		return sum, nil
	}
	if src.ChecksumURL == "" {
		return "", nil
	}
	if _, err := parseURL(object, src.ChecksumURL); err != nil {
		return "", err
	}
	var sum Checksum
	err := s.attempts(ctx, object, func() (bool, error) {
		var err error
		sum, err = s.fetchChecksum(ctx, src.ChecksumURL, name)
		return false, err
	})
	return sum, err
}

// download brings the part to its full length, attempt by attempt.
func (s *Store) download(ctx context.Context, object, address string, p *part, report Report) error {
	err := s.attempts(ctx, object, func() (bool, error) {
		before := p.size()
		err := s.attempt(ctx, address, p, func(done, total int64) { report("download", done, total) })
		return p.size() > before, err
	})
	return err
}

// attempts repeats try until it succeeds, fails for good, or has failed several times in
// a row without bringing anything.
func (s *Store) attempts(ctx context.Context, object string, try func() (progress bool, err error)) error {
	pause, fruitless := s.pause, 0
	for {
		progress, err := try()
		var lasting *lastingError
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.As(err, &lasting), isDiskError(err):
			return diskError(object, "download", err)
		}
		if fruitless++; progress {
			pause, fruitless = s.pause, 0
		}
		if fruitless == fruitlessAttempts {
			return errs.New(errs.Transient, object, "download", errors.Join(errs.ErrUnavailable, err), "check that this host reaches the address")
		}
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return context.Cause(ctx)
		case <-timer.C:
		}
		pause *= 2
	}
}

// parseURL takes http and https only.
func parseURL(object, address string) (*url.URL, error) {
	u, err := url.Parse(address)
	if err == nil && (u.Scheme != "http" && u.Scheme != "https" || u.Host == "") {
		err = fmt.Errorf("%w: %q is no http or https address", errs.ErrInvalid, address)
	}
	if err != nil {
		return nil, errs.NewPermanent(object, "download", err, "give an http(s) URL, or a file on the host")
	}
	return u, nil
}
