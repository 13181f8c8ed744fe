package volume

import (
	"context"
	"errors"
	"log/slog"

	"golang.org/x/sync/errgroup"
	"libvirt.org/go/libvirtxml"

	"burrow.dev/burrow/activities"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/internal/keylock"
	"burrow.dev/burrow/manifest"
)

// Libvirt is the part of the storage driver that is used. Volumes are named by pool and
// name; sizes are bytes.
type Libvirt interface {
	PoolDir(ctx context.Context, pool string) (string, error)
	RefreshPool(ctx context.Context, pool string) error
	Volume(ctx context.Context, pool, name string) (*libvirtxml.StorageVolume, error)
	CreateVolume(ctx context.Context, pool string, def *libvirtxml.StorageVolume) error
	CloneVolume(ctx context.Context, pool string, def *libvirtxml.StorageVolume, from string) error
	ResizeVolume(ctx context.Context, pool, name string, bytes uint64) error
	DeleteVolume(ctx context.Context, pool, name string) error
	RunningDisks(ctx context.Context, uuid string) ([]string, error)
}

// Config is what the activities need.
type Config struct {
	Libvirt Libvirt
	// Pool is the libvirt pool for everything made here.
	Pool string
	// Marks is the folder that remembers which volumes of the pool are burrow's. MarkStanding
	// makes it.
	Marks string
	Log   *slog.Logger
}

// Activities makes and deletes volumes on this host.
type Activities struct {
	cfg   Config
	marks marks
	// names orders what is done to one volume: it and its mark change together, also while
	// an attempt that was given up still runs.
	names keylock.Locks
}

// New makes the activities.
func New(cfg Config) *Activities {
	if cfg.Log == nil {
		cfg.Log = slog.Default()
	}
	return &Activities{cfg: cfg, marks: marks{cfg.Marks}}
}

// Build makes the disks that the server owns and looks up those that are attached to it.
// Disks come in order: vda is the boot disk.
func (a *Activities) Build(ctx context.Context, in BuildIn) (BuildOut, error) {
	wanted, err := a.plan(in)
	if err != nil {
		return BuildOut{}, err
	}
	disks := make([]manifest.Disk, len(wanted))
	g, ctx := errgroup.WithContext(ctx)
	for i, w := range wanted {
		g.Go(func() error {
			var err error
			disks[i], err = a.ensure(ctx, in.Server.Ref(), w)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return BuildOut{}, err
	}
	return BuildOut{Disks: disks}, nil
}

// Remove deletes the disks that the server owns, whatever of them there is. Each deletion
// stands alone: one that fails does not keep the others.
func (a *Activities) Remove(ctx context.Context, in RemoveIn) (activities.Nothing, error) {
	if err := checkUID(in.Server.Ref(), in.Server.UID); err != nil {
		return activities.Nothing{}, err
	}
	var failed error
	for _, name := range bootVolumes(in.Server.Name, in.Server.UID, mainBoot, otherBoot) {
		failed = errors.Join(failed, a.delete(ctx, name))
	}
	for _, format := range formats {
		for _, s := range in.Storage {
			failed = errors.Join(failed, a.delete(ctx, dataVolume(in.Server.Name, in.Server.UID, s.Name, format)))
		}
	}
	if failed != nil {
		return activities.Nothing{}, errs.New(errs.ClassOf(failed), in.Server.Ref(), "delete volumes", failed, "")
	}
	return activities.Nothing{}, nil
}

// Create makes the storage of a Volume resource.
func (a *Activities) Create(ctx context.Context, in CreateIn) (CreateOut, error) {
	object := manifest.Ref(manifest.KindVolume, in.Name)
	if err := checkUID(object, in.UID); err != nil {
		return CreateOut{}, err
	}
	w, err := a.dataOf(object, manifest.Disk{Name: in.Name}, &in.Spec, func(format string) string {
		return resourceVolume(in.Name, in.UID, format)
	})
	if err != nil {
		return CreateOut{}, err
	}
	disk, err := a.ensure(ctx, object, w)
	if err != nil {
		return CreateOut{}, err
	}
	return CreateOut{Volume: manifest.VolumeStatus{
		Pool: disk.Pool, Volume: disk.Volume, Path: disk.Path, Format: disk.Format, Serial: disk.Serial, SizeGiB: disk.SizeGiB,
	}}, nil
}

// Delete deletes the storage of a Volume resource; none is success.
func (a *Activities) Delete(ctx context.Context, in DeleteIn) (activities.Nothing, error) {
	object := manifest.Ref(manifest.KindVolume, in.Name)
	if err := checkUID(object, in.UID); err != nil {
		return activities.Nothing{}, err
	}
	var failed error
	for _, format := range formats {
		failed = errors.Join(failed, a.delete(ctx, resourceVolume(in.Name, in.UID, format)))
	}
	if failed != nil {
		return activities.Nothing{}, errs.New(errs.ClassOf(failed), object, "delete", failed, "")
	}
	return activities.Nothing{}, nil
}
