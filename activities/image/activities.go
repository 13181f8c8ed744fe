package image

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"

	"libvirt.org/go/libvirtxml"

	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/internal/imagestore"
	"burrow.dev/burrow/internal/imagestore/catalogue"
	"burrow.dev/burrow/manifest"
)

// Libvirt is the part of the storage driver that is used.
type Libvirt interface {
	PoolDir(ctx context.Context, pool string) (string, error)
	RefreshPool(ctx context.Context, pool string) error
	Volume(ctx context.Context, pool, name string) (*libvirtxml.StorageVolume, error)
	DeleteVolume(ctx context.Context, pool, name string) error
}

// Records is the part of the state that is used.
type Records interface {
	Get(ctx context.Context, kind manifest.Kind, name string) (manifest.Record, error)
	List(ctx context.Context, kind manifest.Kind) ([]manifest.Record, error)
	Create(ctx context.Context, rec manifest.Record) (manifest.Record, error)
	Update(ctx context.Context, kind manifest.Kind, name string, change func(*manifest.Record) error) (manifest.Record, error)
}

// Config is what the activities need.
type Config struct {
	Libvirt Libvirt
	Records Records
	// Pool is the libvirt dir pool for images.
	Pool string
	// CacheDir holds downloads, built images, and marks of what was verified.
	CacheDir string
	// Host is this host's name, noted in the records of images it has.
	Host string
	Log  *slog.Logger
}

// Activities brings images to this host and removes them.
type Activities struct {
	cfg   Config
	store *imagestore.Store
}

// New makes the activities.
func New(cfg Config) *Activities {
	if cfg.Log == nil {
		cfg.Log = slog.Default()
	}
	return &Activities{cfg: cfg, store: imagestore.New(imagestore.Options{Dir: cfg.CacheDir, Log: cfg.Log})}
}

// Import brings an image from an address or a file on this host into the pool. It writes
// no record.
func (a *Activities) Import(ctx context.Context, in ImportIn) (Out, error) {
	report := heartbeats(ctx)
	o := origin{
		URL: in.URL, File: in.File, Checksum: in.SHA256, ChecksumURL: in.ChecksumURL,
		User: in.User, OSName: in.OSName, OSVersion: in.OSVersion,
	}
	out, err := a.bring(ctx, in.Name, o, "", report)
	if e, known := catalogue.Find(in.Name); err != nil && known && e.URL == in.URL {
		err = suggestBuild(ctx, in.Name, err)
	}
	return out, err
}

// Build makes an image from a distribution's packages and brings it into the pool. It
// writes no record.
func (a *Activities) Build(ctx context.Context, in BuildIn) (Out, error) {
	report := heartbeats(ctx)
	return a.bring(ctx, in.Name, origin{Distro: in.Distro}, "", report)
}

// bring gets an image from where it comes from, and proves that libvirt sees it in the
// pool. want is the SHA-256 it must have as stored; "" for any.
func (a *Activities) bring(ctx context.Context, name string, o origin, want string, report imagestore.Report) (Out, error) {
	object := manifest.Ref(manifest.KindImage, name)
	dir, err := a.cfg.Libvirt.PoolDir(ctx, a.cfg.Pool)
	if err != nil {
		return Out{}, err
	}
	var img imagestore.Installed
	switch {
	case o.Distro != "":
		img, err = a.build(ctx, object, &o, want, dir, report)
	case o.File != "":
		img, err = a.file(ctx, object, o, want, dir, report)
	default:
		img, err = a.download(ctx, object, o, want, dir, report)
	}
	if err != nil {
		return Out{}, err
	}
	if err := a.register(ctx, img.Volume); err != nil {
		return Out{}, err
	}
	a.cfg.Log.Info("image in pool", "image", name, "volume", img.Volume, "source", o.String())
	return Out{
		Volume: img.Volume, SHA256: img.SHA256, SizeBytes: img.SizeBytes, VirtualGiB: img.VirtualGiB(), Format: img.Format,
		User: o.User, OSName: o.OSName, OSVersion: o.OSVersion, Source: o.String(),
	}, nil
}

func (a *Activities) build(ctx context.Context, object string, o *origin, want, dir string, report imagestore.Report) (imagestore.Installed, error) {
	built, err := a.store.Build(ctx, o.Distro, report)
	if err != nil {
		return imagestore.Installed{}, err
	}
	o.User, o.OSName, o.OSVersion = built.User, built.OSName, built.OSVersion
	return a.store.Install(ctx, object, imagestore.From{Path: built.Path, Checksum: built.SHA256, Want: want}, dir, report)
}

func (a *Activities) file(ctx context.Context, object string, o origin, want, dir string, report imagestore.Report) (imagestore.Installed, error) {
	if !filepath.IsAbs(o.File) {
		return imagestore.Installed{}, errs.NewPermanent(object, "import",
			fmt.Errorf("%w: path %q is not absolute", errs.ErrInvalid, o.File), "give the path as it is on the host")
	}
	return a.store.Install(ctx, object, imagestore.From{Path: o.File, Checksum: o.Checksum, Want: want}, dir, report)
}

func (a *Activities) download(ctx context.Context, object string, o origin, want, dir string, report imagestore.Report) (imagestore.Installed, error) {
	d, err := a.store.Fetch(ctx, object, imagestore.Source{URL: o.URL, Checksum: o.Checksum, ChecksumURL: o.ChecksumURL}, report)
	if err != nil {
		return imagestore.Installed{}, err
	}
	defer d.Close()
	img, err := a.store.Install(ctx, object, imagestore.From{Path: d.Path, Owned: true, Want: want}, dir, report)
	if err == nil || errs.ClassOf(err) == errs.Permanent { // used up, or of no use
		d.Discard()
	}
	return img, err
}

// register makes libvirt see a file that was written past it.
func (a *Activities) register(ctx context.Context, volume string) error {
	_, err := a.cfg.Libvirt.Volume(ctx, a.cfg.Pool, volume)
	if !errors.Is(err, errs.ErrNotFound) {
		return err
	}
	if err := a.cfg.Libvirt.RefreshPool(ctx, a.cfg.Pool); err != nil {
		return err
	}
	_, err = a.cfg.Libvirt.Volume(ctx, a.cfg.Pool, volume)
	return err
}
