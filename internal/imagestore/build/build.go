package build

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/google/uuid"

	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/internal/imagestore/diskfile"
	"burrow.dev/burrow/internal/imagestore/tool"
)

// namespace makes the identifiers of disks and filesystems (RFC 9562 v5).
var namespace = uuid.MustParse("6f1d0c52-6b1e-4f0e-9a1c-2f6d5f3f7a10")

// Options say where and how to build.
type Options struct {
	// Dir holds finished images, and work in progress in folders of its own. Made when absent.
	Dir string
	// Log gets the outcome; what the tools print goes to a file beside the image.
	Log *slog.Logger
	// Stage is told what is being done, in a few words; may be nil.
	Stage func(string)
	// Etc is the host's configuration; default "/etc".
	Etc string
}

// Image is a finished build.
type Image struct {
	Path         string    `json:"-"` // qcow2
	Distro       string    `json:"distro"`
	Recipe       string    `json:"recipe"`
	SHA256       string    `json:"sha256"`
	SizeBytes    int64     `json:"sizeBytes"`
	VirtualBytes int64     `json:"virtualBytes"`
	User         string    `json:"user"`
	OSName       string    `json:"osName"`
	OSVersion    string    `json:"osVersion"`
	BuiltAt      time.Time `json:"builtAt"`
}

// Build gives the image of a distribution ("debian12"): the cached one when this recipe
// has been built in Dir before, otherwise a new one (minutes). Callers of one Dir take
// turns, also across processes. Errors: Permanent for an unknown distribution; Operator
// for a missing tool, missing rights or a full disk; Transient for mirrors out of reach.
func Build(ctx context.Context, o Options, distro string) (Image, error) {
	d, err := Find(distro)
	if err != nil {
		return Image{}, err
	}
	if o.Etc == "" {
		o.Etc = "/etc"
	}
	if o.Stage == nil {
		o.Stage = func(string) {}
	}
	mirrors := HostMirrors(d, o.Etc)
	hash, err := Hash(d, mirrors)
	if err != nil {
		return Image{}, errs.NewPermanent("image/"+distro, "build", err, "")
	}
	b := builder{Options: o, distro: d, mirrors: mirrors, hash: hash, object: "image/" + distro}
	if img, ok := b.cached(); ok {
		return img, nil
	}
	img, err := b.locked(ctx)
	if err != nil {
		return Image{}, b.translate(ctx, err)
	}
	return img, nil
}

type builder struct {
	Options
	distro  Distro
	mirrors Mirrors
	hash    string
	object  string
}

// base is the finished image's path without its ending.
func (b *builder) base() string { return filepath.Join(b.Dir, b.distro.Name+"-"+b.hash) }

// cached gives the finished image. The JSON file is written last: it vouches for the other.
func (b *builder) cached() (Image, bool) {
	var img Image
	text, err := os.ReadFile(b.base() + ".json")
	if err != nil || json.Unmarshal(text, &img) != nil {
		return Image{}, false
	}
	img.Path = b.base() + ".qcow2"
	info, err := os.Stat(img.Path)
	return img, err == nil && info.Size() == img.SizeBytes && img.Recipe == b.hash
}

// locked builds with Dir's lock held, in a work folder that does not outlive it.
func (b *builder) locked(ctx context.Context) (Image, error) {
	if os.Geteuid() != 0 {
		return Image{}, errs.NewOperator(b.object, "build", fs.ErrPermission, "build as root: the packages' own scripts need it")
	}
	if err := checkTools(b.object, exec.LookPath); err != nil {
		return Image{}, err
	}
	if _, err := os.Stat(b.mirrors.Keyring); err != nil {
		return Image{}, errs.NewOperator(b.object, "build", err, "apt-get install debian-archive-keyring")
	}
	if err := makeDir(b.Dir, 0o755); err != nil {
		return Image{}, err
	}
	unlock, err := diskfile.Lock(ctx, filepath.Join(b.Dir, ".lock"))
	if err != nil {
		return Image{}, err
	}
	defer unlock()
	if img, ok := b.cached(); ok { // another process has built it meanwhile
		return img, nil
	}
	if err := removeLeftovers(b.Dir); err != nil {
		return Image{}, err
	}
	if err := checkSpace(b.object, b.Dir); err != nil {
		return Image{}, err
	}
	work, err := os.MkdirTemp(b.Dir, workPrefix)
	if err != nil {
		return Image{}, err
	}
	defer os.RemoveAll(work)
	if err := os.Chmod(work, 0o755); err != nil {
		return Image{}, err
	}
	return b.build(ctx, work)
}

// build is the recipe's steps, one after the other.
func (b *builder) build(ctx context.Context, work string) (Image, error) {
	started := time.Now()
	log, err := os.Create(b.base() + ".log")
	if err != nil {
		return Image{}, err
	}
	defer log.Close()
	messages := &stages{log: log, say: b.Stage}
	run := func(ctx context.Context, c tool.Command) error {
		c.Log = messages
		return tool.Run(ctx, c)
	}
	root, err := rootfs(ctx, run, b.distro, b.mirrors, work)
	if err != nil {
		return Image{}, err
	}
	b.Stage("writing disk")
	raw := filepath.Join(work, "disk.raw")
	id := uuid.NewSHA1(namespace, []byte(b.distro.Name+b.hash))
	if err := writeDisk(ctx, run, root, raw, id); err != nil {
		return Image{}, err
	}
	b.Stage("compressing")
	qcow2 := filepath.Join(work, "disk.qcow2")
	if err := run(ctx, tool.Command{Name: "qemu-img", Args: []string{
		"convert", "-c", "-W", "-m", "2", "-f", "raw", "-O", "qcow2", "-o", "compression_type=zstd", raw, qcow2,
	}}); err != nil {
		return Image{}, err
	}
	img, err := b.publish(ctx, qcow2)
	if err == nil {
		b.Log.Info("image built", "image", b.distro.Name, "path", img.Path, "bytes", img.SizeBytes, "took", time.Since(started).Round(time.Second))
	}
	return img, err
}

// publish moves the finished file to its name, on disk for good, and vouches for it.
func (b *builder) publish(ctx context.Context, qcow2 string) (Image, error) {
	img := Image{
		Path: b.base() + ".qcow2", Distro: b.distro.Name, Recipe: b.hash, VirtualBytes: diskSize, User: b.distro.User,
		OSName: b.distro.OSName, OSVersion: b.distro.OSVersion, BuiltAt: time.Now().UTC().Truncate(time.Second),
	}
	if err := os.Chmod(qcow2, 0o644); err != nil {
		return Image{}, err
	}
	var err error
	if img.SHA256, img.SizeBytes, err = diskfile.Digest(ctx, qcow2, nil); err != nil {
		return Image{}, err
	}
	text, err := json.MarshalIndent(img, "", "  ")
	if err != nil {
		return Image{}, err
	}
	mark := qcow2 + ".json"
	if err := writeFile(mark, text, 0o644); err != nil {
		return Image{}, err
	}
	if err := diskfile.Publish(qcow2, img.Path); err != nil {
		return Image{}, err
	}
	if err := diskfile.Publish(mark, b.base()+".json"); err != nil {
		return Image{}, err
	}
	b.removeOlder()
	return img, nil
}

// removeOlder removes the distribution's images of other recipes: nobody asks for them
// again. Pools have copies of their own.
func (b *builder) removeOlder() {
	files, err := filepath.Glob(filepath.Join(b.Dir, b.distro.Name+"-*"))
	for _, path := range files {
		if !strings.HasPrefix(path, b.base()) {
			err = errors.Join(err, os.Remove(path))
		}
	}
	if err != nil {
		b.Log.Warn("older images not removed", "dir", b.Dir, "error", err)
	}
}

// translate gives a failure its class and its mend.
func (b *builder) translate(ctx context.Context, err error) error {
	var known *errs.Error
	logFile := "the log is " + b.base() + ".log"
	fail := func(class errs.Class, cause error, next string) error {
		return errs.New(class, b.object, "build", cause, next)
	}
	switch {
	case errors.As(err, &known), ctx.Err() != nil:
		return err
	case errors.Is(err, syscall.ENOSPC), tool.Said(err, "No space left on device", "not enough free space"):
		return fail(errs.Operator, fmt.Errorf("%w: %w", errs.ErrNoSpace, err), fmt.Sprintf("make room below %s (%d MiB are needed)", b.Dir, needBytes>>20))
	case tool.Said(err, "NO_PUBKEY", "EXPKEYSIG", "is not signed"):
		return fail(errs.Operator, err, "install a newer debian-archive-keyring, or check the mirror; "+logFile)
	case tool.Said(err, "is not valid yet", "is expired"):
		return fail(errs.Operator, err, "set this host's clock, or choose a mirror that is up to date; "+logFile)
	case tool.Said(err, "Could not resolve", "Could not connect", "Failed to fetch", "Unable to connect", "Temporary failure", "Connection failed", "does not have a Release file"):
		return fail(errs.Transient, fmt.Errorf("%w: %w", errs.ErrUnavailable, err),
			fmt.Sprintf("is a Debian mirror reachable from this host (%s)? apt's sources and http_proxy are taken over; %s", b.mirrors.Archive[0], logFile))
	}
	return fail(errs.Operator, err, logFile)
}
