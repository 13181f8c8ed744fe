package manifest

// dataVolume is a data disk's spec in normal form.
func dataVolume(in diskVolumeInput) *VolumeSpec {
	return &VolumeSpec{Type: in.Type, Size: int(in.Size), Kind: "data", Persistent: in.Persistent}
}

// volume brings a Volume's spec into its normal form.
func volume(in volumeInput) *VolumeSpec {
	spec := dataVolume(in.diskVolumeInput)
	spec.Kind = in.Kind
	return spec
}
