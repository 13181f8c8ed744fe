package manifest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

const (
	// fetchTimeout bounds a manifest's download: it is small, and a person waits for it.
	fetchTimeout = 30 * time.Second
	// maxRedirects is enough for a forge's raw-file links.
	maxRedirects = 5
)

// source is one manifest as read.
type source struct {
	name  string // as the user named it
	dir   string // folder, absolute; "" when it has none
	order int
	text  []byte
	lines []string // filled on first use
}

// line gives line n, counted from 1, or "".
func (s *source) line(n int) string {
	if s.lines == nil {
		s.lines = strings.Split(string(s.text), "\n")
	}
	if n < 1 || n > len(s.lines) {
		return ""
	}
	return s.lines[n-1]
}

// reader reads sources, one problem for each that it cannot.
type reader struct {
	opts     Options
	sources  []*source
	problems Problems
}

func (r *reader) readAll(ctx context.Context, names []string) {
	for _, name := range names {
		var err error
		switch {
		case name == "-":
			err = r.readStdin()
		case isURL(name):
			err = r.readURL(ctx, name)
		default:
			err = r.readPath(name)
		}
		if err != nil {
			r.fail(redacted(name), err)
		}
	}
	if len(names) == 0 {
		r.fail("-f", errors.New("no manifest given; name a file, a folder, a URL, or - for standard input"))
	}
}

func (r *reader) fail(name string, err error) {
	r.problems = append(r.problems, Problem{File: name, Message: err.Error(), order: len(r.sources)})
}

func (r *reader) readStdin() error {
	in := r.opts.Stdin
	if in == nil {
		in = os.Stdin
	}
	dir := r.opts.WorkDir
	if dir == "" {
		var err error
		if dir, err = os.Getwd(); err != nil {
			return fmt.Errorf("find the current folder: %w", err)
		}
	}
	return r.add("-", dir, in)
}

func (r *reader) readPath(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return pathError(err)
	}
	if info.IsDir() {
		return r.readDir(path)
	}
	return r.readFile(path)
}

// readDir reads the folder's own *.yaml and *.yml, sorted by name.
func (r *reader) readDir(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return pathError(err)
	}
	var names []string
	for _, entry := range entries {
		path := filepath.Join(dir, entry.Name())
		ext := filepath.Ext(entry.Name())
		if ext != ".yaml" && ext != ".yml" || strings.HasPrefix(entry.Name(), ".") {
			continue
		}
		if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
			continue // a folder or a pipe of that name is no manifest
		}
		names = append(names, path)
	}
	if len(names) == 0 {
		return errors.New("no *.yaml or *.yml in this folder (subfolders are not searched)")
	}
	slices.Sort(names)
	for _, name := range names {
		if err := r.readFile(name); err != nil {
			r.fail(name, err)
		}
	}
	return nil
}

func (r *reader) readFile(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return pathError(err)
	}
	defer file.Close()
	dir, err := filepath.Abs(filepath.Dir(path))
	if err != nil {
		return fmt.Errorf("find its folder: %w", err)
	}
	return r.add(path, dir, file)
}

func (r *reader) readURL(ctx context.Context, name string) error {
	address, err := url.Parse(name)
	if err != nil || address.Host == "" {
		return errors.New("not a URL that can be fetched")
	}
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, name, nil)
	if err != nil {
		return errors.New("not a URL that can be fetched")
	}
	response, err := r.client().Do(request)
	if err != nil {
		var wrapped *url.Error // its text repeats the URL, with a password that may be in it
		if errors.As(err, &wrapped) {
			err = wrapped.Err
		}
		return fmt.Errorf("fetch the manifest: %w", err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("fetch the manifest: the server answered %s", response.Status)
	}
	if strings.HasPrefix(response.Header.Get("Content-Type"), "text/html") {
		return errors.New("fetch the manifest: the server sent an HTML page; use the address of the raw file")
	}
	return r.add(address.Redacted(), "", response.Body)
}

func (r *reader) client() *http.Client {
	if r.opts.HTTP != nil {
		return r.opts.HTTP
	}
	return &http.Client{CheckRedirect: func(next *http.Request, via []*http.Request) error {
		if len(via) > maxRedirects {
			return fmt.Errorf("more than %d redirects", maxRedirects)
		}
		if via[0].URL.Scheme == "https" && next.URL.Scheme != "https" {
			return errors.New("redirected from https to " + next.URL.Scheme)
		}
		return nil
	}}
}

// add reads one manifest whole and does to its text what YAML leaves to the reader:
// byte order mark, line ends, encoding.
func (r *reader) add(name, dir string, in io.Reader) error {
	if len(r.sources) >= MaxFiles {
		return fmt.Errorf("more than %d manifests in one apply", MaxFiles)
	}
	text, err := readBounded(in, MaxFileBytes)
	if err != nil {
		return err
	}
	text = bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))
	text = bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n"))
	if !utf8.Valid(text) || bytes.IndexByte(text, 0) >= 0 {
		return errors.New("not a text file in UTF-8")
	}
	r.sources = append(r.sources, &source{name: name, dir: dir, order: len(r.sources), text: text})
	return nil
}

// readBounded reads at most limit bytes; more is an error, never a silent cut.
func readBounded(in io.Reader, limit int64) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(in, limit+1))
	if err != nil {
		return nil, pathError(err)
	}
	if int64(len(text)) > limit {
		return nil, fmt.Errorf("larger than %d KiB, the limit for this file", limit>>10)
	}
	return text, nil
}

func isURL(name string) bool {
	return strings.HasPrefix(name, "https://") || strings.HasPrefix(name, "http://")
}

func redacted(name string) string {
	if !isURL(name) {
		return name
	}
	address, err := url.Parse(name)
	if err != nil {
		return "URL"
	}
	return address.Redacted()
}

// pathError keeps the cause only: the path is already in front of the message.
func pathError(err error) error {
	var path *os.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	return err
}
