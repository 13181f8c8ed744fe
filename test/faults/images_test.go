package faults

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"go.temporal.io/sdk/client"

	"burrow.dev/burrow/activities"
	"burrow.dev/burrow/activities/image"
	"burrow.dev/burrow/manifest"
	"burrow.dev/burrow/workflows"
)

const worldImage = "an image"

// imageFile makes a file that no other subject has, and remembers its checksum.
func (c *subject) imageFile(ctx context.Context) (string, error) {
	path := filepath.Join(c.site.images, c.name+".qcow2")
	if _, err := os.Stat(path); err != nil {
		var serial int
		if _, err := fmt.Sscanf(c.name, "s%dz", &serial); err != nil {
			return "", err
		}
		size := fmt.Sprint(64<<20 + 512*serial)
		if out, err := exec.CommandContext(ctx, "qemu-img", "create", "-q", "-f", "qcow2", path, size).CombinedOutput(); err != nil {
			return "", fmt.Errorf("qemu-img: %w: %s", err, out)
		}
	}
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, file); err != nil {
		return "", err
	}
	c.checksum = hex.EncodeToString(sum.Sum(nil))
	return path, nil
}

func createImage(ctx context.Context, c *subject) (client.WorkflowRun, error) {
	path, err := c.imageFile(ctx)
	if err != nil {
		return nil, err
	}
	return c.begin(ctx, c.ref(), workflows.NameCreateImage, workflows.CreateImageIn{
		Metadata: manifest.Metadata{Name: c.name},
		Import:   &image.ImportIn{Name: c.name, File: path, User: "root"},
	})
}

// brought is an image's file in the pool, verified: it stays for whoever asks again, also when
// there is no record of it.
func brought(line string) bool { return strings.HasPrefix(line, "pool: img-") }

// removeImage asks again where it was given up, so that there is a record of the file.
func (c *subject) removeImage(ctx context.Context) error {
	rec, _, err := c.record(ctx)
	if err == nil && c.checksum != "" && rec.Status.Phase != manifest.PhaseReady {
		err = c.well(ctx, createImage)
	}
	return err
}

// imaging are the operations of images.
func imaging() []operation {
	return []operation{
		{
			name: "create an image", kind: manifest.KindImage, ends: worldImage, start: createImage, builds: true,
			steps: steps([]place{
				{step: "place", activity: activities.PlacePlace, atomic: true},
				{step: "place (give back)", activity: activities.PlaceRelease, atomic: true},
				{step: "bring image", activity: activities.ImageImport},
			}),
		},
		{
			name: "delete an image", kind: manifest.KindImage, ends: worldGone, deletes: true,
			prepare: func(ctx context.Context, c *subject) error { return c.well(ctx, createImage) },
			start:   deletion(workflows.NameDeleteImage),
			steps: []place{
				atBegin,
				{step: "delete image", activity: activities.ImageRemove},
				{step: "finish", activity: activities.StateRemove, atomic: true},
			},
		},
	}
}
