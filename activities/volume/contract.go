package volume

import (
	"burrow.dev/burrow/activities"
	"burrow.dev/burrow/activities/image"
	"burrow.dev/burrow/manifest"
)

// BuildIn asks for a server's disks: the boot volume over the image and the data
// volumes the server owns; attached Volumes (records) are only looked up.
type BuildIn struct {
	Server   activities.Server   `json:"server"`
	Image    image.EnsureOut     `json:"image"`
	Boot     manifest.BootVolume `json:"boot"`
	Storage  []manifest.Storage  `json:"storage,omitempty"`
	Attached []manifest.Record   `json:"attached,omitempty"` // Volume records, for storage without spec
}

// BuildOut is every disk in order: vda, vdb, …
type BuildOut struct {
	Disks []manifest.Disk `json:"disks"`
}

// RemoveIn deletes the owned disks of a server: names derive from its uid, so it works
// with no list from Build. A volume of the same name without our uid is not touched.
type RemoveIn struct {
	Server  activities.Server  `json:"server"`
	Storage []manifest.Storage `json:"storage,omitempty"`
}

// RebuildIn makes a new boot volume for a server that has one.
type RebuildIn struct {
	Server activities.Server   `json:"server"`
	Image  image.EnsureOut     `json:"image"`
	Boot   manifest.BootVolume `json:"boot"`
	InUse  string              `json:"inUse"` // volume name of the present boot disk, which stays
}

// RebuildOut is the new boot disk. Not the server's own making → Permanent ErrNotManaged.
type RebuildOut struct {
	Disk manifest.Disk `json:"disk"`
}

// DiscardIn deletes the boot volume that a rebuild has left behind, or has made in vain.
type DiscardIn struct {
	Server activities.Server `json:"server"`
	InUse  string            `json:"inUse"`
}

// AddIn makes further data disks of a server that stands.
type AddIn struct {
	Server   activities.Server  `json:"server"`
	Storage  []manifest.Storage `json:"storage"`
	Attached []manifest.Record  `json:"attached,omitempty"` // Volume records, for storage without spec
	Taken    []string           `json:"taken"`              // targets of the disks that stand: "vda", …
}

// AddOut is the new disks, in order.
type AddOut struct {
	Disks []manifest.Disk `json:"disks"`
}

// DropIn deletes data disks that the server owns, by their names in storage.
type DropIn struct {
	Server activities.Server `json:"server"`
	Names  []string          `json:"names"`
}

// CreateIn makes a Volume resource.
type CreateIn struct {
	Name string              `json:"name"`
	UID  string              `json:"uid"`
	Spec manifest.VolumeSpec `json:"spec"`
}

// CreateOut is where it is; AttachedTo empty.
type CreateOut struct {
	Volume manifest.VolumeStatus `json:"volume"`
}

// DeleteIn deletes a Volume resource's storage; absent is success.
type DeleteIn struct {
	Name string `json:"name"`
	UID  string `json:"uid"`
}
