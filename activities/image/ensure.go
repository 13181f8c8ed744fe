package image

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/activity"

	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/internal/imagestore"
	"burrow.dev/burrow/internal/imagestore/build"
	"burrow.dev/burrow/internal/imagestore/catalogue"
	"burrow.dev/burrow/manifest"
)

// catalogueAttempts is after how many tries an address of the catalogue that cannot be
// reached becomes the operator's: there may be no internet at all, and waiting for it
// would hide the local build from the user.
const catalogueAttempts = 3

// Ensure gives the verified copy of an image in this host's pool, bringing it first when
// it is not there: from where its record says, or from the catalogue. Callers that want
// the same image take turns, and the later ones find it there.
func (a *Activities) Ensure(ctx context.Context, in EnsureIn) (EnsureOut, error) {
	report := heartbeats(ctx)
	if out, there, err := a.atHand(ctx, in.Name); there || err != nil {
		return out, err
	}
	unlock, err := a.store.Lock(ctx, manifest.Ref(manifest.KindImage, in.Name))
	if err != nil {
		return EnsureOut{}, err
	}
	defer unlock()
	if out, there, err := a.atHand(ctx, in.Name); there || err != nil { // brought meanwhile
		return out, err
	}
	rec, err := a.cfg.Records.Get(ctx, manifest.KindImage, in.Name)
	switch {
	case errors.Is(err, errs.ErrNotFound):
		return a.fromCatalogue(ctx, in.Name, report)
	case err != nil:
		return EnsureOut{}, err
	}
	o, err := recordOrigin(rec)
	if err != nil {
		return EnsureOut{}, err
	}
	if _, err := a.bring(ctx, in.Name, o, rec.Status.Image.SHA256, report); err != nil {
		return EnsureOut{}, err
	}
	return a.settled(ctx, in.Name)
}

// atHand gives the copy that the image's record names, if this host has it. An image
// without a record is not at hand.
func (a *Activities) atHand(ctx context.Context, name string) (EnsureOut, bool, error) {
	rec, err := a.cfg.Records.Get(ctx, manifest.KindImage, name)
	switch {
	case errors.Is(err, errs.ErrNotFound):
		return EnsureOut{}, false, nil
	case err != nil:
		return EnsureOut{}, false, err
	}
	if err := ready(rec); err != nil {
		return EnsureOut{}, false, err
	}
	dir, err := a.cfg.Libvirt.PoolDir(ctx, a.cfg.Pool)
	if err != nil {
		return EnsureOut{}, false, err
	}
	img, there, err := a.store.Verified(ctx, manifest.Ref(manifest.KindImage, name), dir, rec.Status.Image.SHA256)
	if err != nil || !there {
		return EnsureOut{}, false, err
	}
	if err := errors.Join(a.register(ctx, img.Volume), a.noteHost(ctx, rec)); err != nil {
		return EnsureOut{}, false, err
	}
	return a.out(img, rec.Status.Image.User), true, nil
}

// settled is atHand of an image that has just been brought.
func (a *Activities) settled(ctx context.Context, name string) (EnsureOut, error) {
	out, there, err := a.atHand(ctx, name)
	if err == nil && !there {
		err = errs.NewTransient(manifest.Ref(manifest.KindImage, name), "ensure", fmt.Errorf("%w: its record or its volume went away", errs.ErrConflict))
	}
	return out, err
}

// ready refuses an image that is still on its way, or has failed.
func ready(rec manifest.Record) error {
	object := manifest.Ref(manifest.KindImage, rec.Metadata.Name)
	if rec.Status.Image != nil && rec.Status.Phase == manifest.PhaseReady {
		return nil
	}
	cause := fmt.Errorf("%w: it is %s", errs.ErrUnavailable, rec.Status.Phase)
	if rec.Status.Phase == manifest.PhaseFailed {
		return errs.NewOperator(object, "ensure", fmt.Errorf("%w: %s", cause, strings.TrimPrefix(rec.Status.Message, object+": ")), "bring it again: burrow image import or burrow image build")
	}
	return errs.New(errs.Transient, object, "ensure", cause, "follow it: burrow watch image/"+rec.Metadata.Name)
}

// fromCatalogue downloads an image that nobody has imported, and records it.
func (a *Activities) fromCatalogue(ctx context.Context, name string, report imagestore.Report) (EnsureOut, error) {
	entry, known := catalogue.Find(name)
	if !known {
		return EnsureOut{}, errs.NewPermanent(manifest.Ref(manifest.KindImage, name), "ensure", errs.ErrNotFound,
			"burrow image list shows the library and the catalogue; burrow image import URL|FILE --name "+name+" brings one")
	}
	o := catalogueOrigin(entry)
	brought, err := a.bring(ctx, name, o, "", report)
	if err != nil {
		return EnsureOut{}, suggestBuild(ctx, name, err)
	}
	if err := a.record(ctx, name, o, brought); err != nil {
		return EnsureOut{}, err
	}
	return a.settled(ctx, name)
}

// suggestBuild says that an image whose address cannot be reached can be built here.
func suggestBuild(ctx context.Context, name string, err error) error {
	if !errors.Is(err, errs.ErrUnavailable) || errs.ClassOf(err) != errs.Transient {
		return err
	}
	next := "check that this host reaches the address, or import the image from a file: burrow image import FILE --name " + name
	if _, buildErr := build.Find(name); buildErr == nil {
		next = "without internet, build it from Debian's packages: burrow image build " + name
	}
	class := errs.Transient
	if activity.IsActivity(ctx) && activity.GetInfo(ctx).Attempt >= catalogueAttempts {
		class = errs.Operator
	}
	return errs.New(class, manifest.Ref(manifest.KindImage, name), "download", errors.Unwrap(err), next)
}

// record writes the record of an image that came from the catalogue. Whoever was first wins.
func (a *Activities) record(ctx context.Context, name string, o origin, img Out) error {
	spec, err := json.Marshal(o.spec())
	if err != nil {
		return err
	}
	rec := manifest.Record{
		APIVersion: manifest.APIVersion, Kind: manifest.KindImage, Spec: spec,
		Metadata: manifest.RecordMeta{
			Metadata: manifest.Metadata{Name: name, Comment: "from the catalogue"}, UID: uuid.NewString(), Generation: 1, CreatedAt: time.Now().UTC(),
		},
		Status: manifest.Status{
			Phase: manifest.PhaseReady, ObservedGeneration: 1, Host: a.cfg.Host,
			Image: &manifest.ImageStatus{
				SHA256: img.SHA256, SizeBytes: img.SizeBytes, VirtualGiB: img.VirtualGiB, Format: img.Format, User: img.User,
				OSName: img.OSName, OSVersion: img.OSVersion, Source: img.Source, Hosts: []string{a.cfg.Host},
			},
		},
	}
	if _, err := a.cfg.Records.Create(ctx, rec); err != nil && !errors.Is(err, errs.ErrExists) {
		return err
	}
	return nil
}

// noteHost notes in the record that this host has a verified copy.
func (a *Activities) noteHost(ctx context.Context, rec manifest.Record) error {
	if slices.Contains(rec.Status.Image.Hosts, a.cfg.Host) {
		return nil
	}
	_, err := a.cfg.Records.Update(ctx, manifest.KindImage, rec.Metadata.Name, func(r *manifest.Record) error {
		if r.Status.Image != nil && r.Status.Image.SHA256 == rec.Status.Image.SHA256 && !slices.Contains(r.Status.Image.Hosts, a.cfg.Host) {
			r.Status.Image.Hosts = append(r.Status.Image.Hosts, a.cfg.Host)
		}
		return nil
	})
	return err
}

func (a *Activities) out(img imagestore.Installed, user string) EnsureOut {
	return EnsureOut{
		Pool: a.cfg.Pool, Volume: img.Volume, Path: img.Path, Format: img.Format,
		SHA256: img.SHA256, VirtualGiB: img.VirtualGiB(), User: user,
	}
}
