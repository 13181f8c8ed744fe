package image

import (
	"context"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/internal/imagestore"
	"burrow.dev/burrow/internal/libvirtx"
	"burrow.dev/burrow/manifest"
	"burrow.dev/burrow/test/lab"
)

func TestMain(m *testing.M) { lab.Main(m, lab.Libvirt) }

// host is a hypervisor with a pool, and records in memory.
type host struct {
	*Activities
	libvirt *libvirtx.Connection
	records *records
	pool    string
}

func newHost(t *testing.T) host {
	t.Helper()
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	conn := libvirtx.New("", log)
	t.Cleanup(func() { require.NoError(t, conn.Close()) })
	dir, err := os.MkdirTemp("", "burrow-image-test-")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	pool := filepath.Join(dir, "pool")
	name := "p" + filepath.Base(dir)
	require.NoError(t, conn.EnsurePool(t.Context(), name, pool))
	recs := &records{all: map[string]manifest.Record{}}
	a := New(Config{Libvirt: conn, Records: recs, Pool: name, CacheDir: filepath.Join(dir, "cache"), Host: "kvm1", Log: log})
	return host{a, conn, recs, pool}
}

// records is the state's part that is used, in memory.
type records struct {
	mu  sync.Mutex
	all map[string]manifest.Record
}

func (r *records) Get(_ context.Context, _ manifest.Kind, name string) (manifest.Record, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	rec, ok := r.all[name]
	if !ok {
		return rec, errs.ErrNotFound
	}
	return rec, nil
}

func (r *records) List(context.Context, manifest.Kind) ([]manifest.Record, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var list []manifest.Record
	for _, rec := range r.all {
		list = append(list, rec)
	}
	return list, nil
}

func (r *records) Create(_ context.Context, rec manifest.Record) (manifest.Record, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, ok := r.all[rec.Metadata.Name]; ok {
		return rec, errs.ErrExists
	}
	r.all[rec.Metadata.Name] = rec
	return rec, nil
}

func (r *records) Update(_ context.Context, _ manifest.Kind, name string, change func(*manifest.Record) error) (manifest.Record, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	rec := r.all[name]
	if rec.Status.Image != nil { // a copy of its own, as from etcd
		status := *rec.Status.Image
		rec.Status.Image = &status
	}
	if err := change(&rec); err != nil {
		return rec, err
	}
	r.all[name] = rec
	return rec, nil
}

func (r *records) put(t *testing.T, name, source string, phase manifest.Phase, status *manifest.ImageStatus) {
	t.Helper()
	spec, err := json.Marshal(manifest.ImageSpec{SourceURL: source})
	require.NoError(t, err)
	r.all[name] = manifest.Record{
		Kind: manifest.KindImage, Metadata: manifest.RecordMeta{Metadata: manifest.Metadata{Name: name}}, Spec: spec,
		Status: manifest.Status{Phase: phase, Image: status, Message: "image/" + name + ": disk full"},
	}
}

// diskFile is a qcow2 file with its SHA-256.
func diskFile(t *testing.T, text string) (path, sum string) {
	t.Helper()
	dir := t.TempDir()
	raw := filepath.Join(dir, "raw")
	b := make([]byte, 2<<20)
	copy(b, text)
	b[510], b[511] = 0x55, 0xaa
	require.NoError(t, os.WriteFile(raw, b, 0o600))
	path = filepath.Join(dir, "disk.qcow2")
	run(t, "qemu-img", "convert", "-f", "raw", "-O", "qcow2", raw, path)
	stored, err := os.ReadFile(path)
	require.NoError(t, err)
	digest := sha256.Sum256(stored)
	return path, hex.EncodeToString(digest[:])
}

func run(t *testing.T, name string, args ...string) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput()
	require.NoError(t, err, "%s", out)
}

func TestAnImportedFileIsAVolumeOfThePoolAndCanBeDeleted(t *testing.T) {
	h := newHost(t)
	path, sum := diskFile(t, "imported")
	in := ImportIn{Name: "mine", File: path, SHA256: sum, User: "me", OSName: "debian", OSVersion: "12"}
	out, err := h.Import(t.Context(), in)
	require.NoError(t, err)
	require.Equal(t, Out{
		Volume: imagestore.VolumeName(sum), SHA256: sum, SizeBytes: out.SizeBytes, VirtualGiB: 1, Format: "qcow2",
		User: "me", OSName: "debian", OSVersion: "12", Source: "file://" + path,
	}, out)
	vol, err := h.libvirt.Volume(t.Context(), h.cfg.Pool, out.Volume)
	require.NoError(t, err)
	require.Equal(t, filepath.Join(h.pool, out.Volume), vol.Target.Path)

	again, err := h.Import(t.Context(), in)
	require.NoError(t, err)
	require.Equal(t, out, again)

	for range 2 {
		_, err = h.Remove(t.Context(), RemoveIn{Name: "mine", SHA256: sum})
		require.NoError(t, err)
		_, err = h.libvirt.Volume(t.Context(), h.cfg.Pool, out.Volume)
		require.ErrorIs(t, err, errs.ErrNotFound)
	}
}

func TestAnImageThatDisksStandOnIsNotDeleted(t *testing.T) {
	h := newHost(t)
	path, sum := diskFile(t, "base")
	out, err := h.Import(t.Context(), ImportIn{Name: "base", File: path})
	require.NoError(t, err)
	run(t, "qemu-img", "create", "-q", "-f", "qcow2", "-b", filepath.Join(h.pool, out.Volume), "-F", "qcow2", filepath.Join(h.pool, "db-boot.qcow2"))
	_, err = h.Remove(t.Context(), RemoveIn{Name: "base", SHA256: sum})
	require.Equal(t, errs.Permanent, errs.ClassOf(err))
	require.ErrorContains(t, err, "db-boot.qcow2")
	require.FileExists(t, filepath.Join(h.pool, out.Volume))
}

func TestAnImageUnderTwoNamesStaysUntilTheLastIsDeleted(t *testing.T) {
	h := newHost(t)
	path, sum := diskFile(t, "two names")
	out, err := h.Import(t.Context(), ImportIn{Name: "a", File: path})
	require.NoError(t, err)
	h.records.put(t, "b", "file://"+path, manifest.PhaseReady, &manifest.ImageStatus{SHA256: sum})
	_, err = h.Remove(t.Context(), RemoveIn{Name: "a", SHA256: sum})
	require.NoError(t, err)
	require.FileExists(t, filepath.Join(h.pool, out.Volume))
	_, err = h.Remove(t.Context(), RemoveIn{Name: "b", SHA256: sum})
	require.NoError(t, err)
	require.NoFileExists(t, filepath.Join(h.pool, out.Volume))
}

func TestARecordedImageIsBroughtAgainToAHostThatLacksIt(t *testing.T) {
	h := newHost(t)
	path, sum := diskFile(t, "recorded")
	h.records.put(t, "rec", "file://"+path, manifest.PhaseReady, &manifest.ImageStatus{SHA256: sum, User: "me", Hosts: []string{"kvm0"}})
	for range 2 {
		out, err := h.Ensure(t.Context(), EnsureIn{Name: "rec"})
		require.NoError(t, err)
		require.Equal(t, EnsureOut{
			Pool: h.cfg.Pool, Volume: imagestore.VolumeName(sum), Path: filepath.Join(h.pool, imagestore.VolumeName(sum)),
			Format: "qcow2", SHA256: sum, VirtualGiB: 1, User: "me",
		}, out)
		require.NoError(t, os.RemoveAll(path), "the second time no source is needed")
	}
	require.Equal(t, []string{"kvm0", "kvm1"}, h.records.all["rec"].Status.Image.Hosts)
}

func TestASourceThatChangedIsNotTakenForTheRecordedImage(t *testing.T) {
	h := newHost(t)
	path, _ := diskFile(t, "changed")
	_, other := diskFile(t, "as recorded")
	h.records.put(t, "rec", "file://"+path, manifest.PhaseReady, &manifest.ImageStatus{SHA256: other})
	_, err := h.Ensure(t.Context(), EnsureIn{Name: "rec"})
	require.Equal(t, errs.Permanent, errs.ClassOf(err))
	require.ErrorContains(t, err, "the source has changed")
}

func TestEnsureSaysWhatToDoWithoutAnImage(t *testing.T) {
	h := newHost(t)
	h.records.put(t, "coming", "https://example.test/x", manifest.PhaseProvisioning, nil)
	h.records.put(t, "failed", "https://example.test/x", manifest.PhaseFailed, nil)
	for name, c := range map[string]struct {
		class errs.Class
		says  string
	}{
		"nobody-knows": {errs.Permanent, "burrow image list"},
		"coming":       {errs.Transient, "burrow watch image/coming"},
		"failed":       {errs.Operator, "disk full"},
	} {
		_, err := h.Ensure(t.Context(), EnsureIn{Name: name})
		require.Equal(t, c.class, errs.ClassOf(err), name)
		require.ErrorContains(t, err, c.says)
		require.Equal(t, 1, strings.Count(err.Error(), "image/"+name+": "), "named once: %v", err)
	}
}

func TestWithoutInternetTheLocalBuildIsSuggested(t *testing.T) {
	h := newHost(t) // this test's network has no way out
	_, err := h.Ensure(t.Context(), EnsureIn{Name: "debian12"})
	require.ErrorIs(t, err, errs.ErrUnavailable)
	require.ErrorContains(t, err, "burrow image build debian12")
	_, err = h.Ensure(t.Context(), EnsureIn{Name: "rocky9"})
	require.ErrorContains(t, err, "burrow image import FILE --name rocky9")
	require.Empty(t, h.records.all)
}

// publish answers for every address with an image and its SHA512SUMS.
func (h *host) publish(t *testing.T, path string) (downloads *atomic.Int64) {
	t.Helper()
	downloads = &atomic.Int64{}
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if filepath.Base(r.URL.Path) == "SHA512SUMS" {
			fmt.Fprintf(w, "%x  debian-12-genericcloud-amd64.qcow2\n", sha512.Sum512(b))
			return
		}
		downloads.Add(1)
		_, _ = w.Write(b)
	}))
	t.Cleanup(server.Close)
	to, err := url.Parse(server.URL)
	require.NoError(t, err)
	h.store = imagestore.New(imagestore.Options{Dir: h.cfg.CacheDir, Client: &http.Client{Transport: redirected{to}}})
	return downloads
}

type redirected struct{ to *url.URL }

func (r redirected) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	req.URL.Scheme, req.URL.Host = r.to.Scheme, r.to.Host
	return http.DefaultTransport.RoundTrip(req)
}

func TestManyServersThatWantTheSameCatalogueImageDownloadItOnce(t *testing.T) {
	h := newHost(t)
	path, sum := diskFile(t, "published")
	downloads := h.publish(t, path)
	g, ctx := errgroup.WithContext(t.Context())
	for range 8 {
		g.Go(func() error {
			out, err := h.Ensure(ctx, EnsureIn{Name: "debian12"})
			if err == nil && (out.SHA256 != sum || out.User != "debian") {
				err = fmt.Errorf("got %+v", out)
			}
			return err
		})
	}
	require.NoError(t, g.Wait())
	require.EqualValues(t, 1, downloads.Load())
	rec := h.records.all["debian12"]
	require.Equal(t, manifest.PhaseReady, rec.Status.Phase)
	require.Equal(t, []string{"kvm1"}, rec.Status.Image.Hosts)
	require.Equal(t, sum, rec.Status.Image.SHA256)
	left, err := os.ReadDir(filepath.Join(h.cfg.CacheDir, "downloads"))
	require.NoError(t, err)
	for _, f := range left {
		require.Equal(t, ".lock", filepath.Ext(f.Name()), "the download is used up")
	}
}

func TestADownloadThatIsNoImageIsThrownAway(t *testing.T) {
	h := newHost(t)
	junk := filepath.Join(t.TempDir(), "junk")
	require.NoError(t, os.WriteFile(junk, make([]byte, 5000), 0o600))
	h.publish(t, junk)
	_, err := h.Import(t.Context(), ImportIn{Name: "junk", URL: "https://example.test/junk.img"})
	require.Equal(t, errs.Permanent, errs.ClassOf(err), "%v", err)
	parts, err := filepath.Glob(filepath.Join(h.cfg.CacheDir, "downloads", "*.part"))
	require.NoError(t, err)
	require.Empty(t, parts)
	require.NotContains(t, errs.Reason("%v", err).Error(), "http://127")
}
