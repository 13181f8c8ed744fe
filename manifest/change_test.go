package manifest

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"burrow.dev/burrow/internal/errs"
)

func builtAs(t *testing.T, spec ServerSpec) Record {
	t.Helper()
	text, err := json.Marshal(spec)
	require.NoError(t, err)
	return Record{
		Kind: KindServer, Spec: text, Metadata: RecordMeta{Metadata: Metadata{Name: "db"}},
		Status: Status{Phase: PhaseRunning, Host: "kvm1", Bundle: "sha256:00", Disks: []Disk{
			{Name: "boot", SizeGiB: 10, Owned: true}, {Name: "scratch", SizeGiB: 5, Owned: true}, {Name: "vol", SizeGiB: 7},
		}},
	}
}

func declared() ServerSpec {
	return ServerSpec{
		CPU: 2, Memory: 1024, Image: "debian12", Firmware: "bios", BootVolume: BootVolume{Type: "qcow2"},
		Storage:          []Storage{{Name: "scratch", Spec: &VolumeSpec{Type: "qcow2", Size: 5}}, {Name: "vol"}},
		NetworkInterface: []NIC{{Name: "a-0", Network: "a"}, {Name: "b-0", Network: "b"}},
		Ansible:          &Ansible{Playbook: []string{"site.yaml"}},
	}
}

func TestAServerAsDeclaredHasNoChange(t *testing.T) {
	c, err := ChangeServer(builtAs(t, declared()), Metadata{Name: "db"}, declared(), "sha256:00")
	require.NoError(t, err)
	require.True(t, c.Empty())
}

func TestWhatBecomesOfEachField(t *testing.T) {
	spec := func(change func(*ServerSpec)) ServerSpec {
		s := declared()
		change(&s)
		return s
	}
	for name, tc := range map[string]struct {
		meta    Metadata
		spec    ServerSpec
		bundle  string
		want    ServerChange // without Effects and Refused
		effect  string
		refused string
	}{
		"labels":              {meta: Metadata{Name: "db", Labels: map[string]string{"a": "b"}}, spec: declared(), effect: "metadata.labels"},
		"pinned where it is":  {meta: Metadata{Name: "db", NodeName: "kvm1"}, spec: declared(), effect: "metadata.nodeName"},
		"pinned elsewhere":    {meta: Metadata{Name: "db", NodeName: "kvm2"}, spec: declared(), refused: "metadata.nodeName"},
		"cpu":                 {spec: spec(func(s *ServerSpec) { s.CPU = 4 }), want: ServerChange{Machine: true, Fit: true}, effect: "spec.cpu"},
		"memory":              {spec: spec(func(s *ServerSpec) { s.Memory = 512 }), want: ServerChange{Machine: true, Fit: true}, effect: "spec.memory"},
		"image":               {spec: spec(func(s *ServerSpec) { s.Image = "debian13" }), refused: "spec.mmImage"},
		"firmware":            {spec: spec(func(s *ServerSpec) { s.Firmware = "uefi" }), refused: "spec.firmware"},
		"boot grows":          {spec: spec(func(s *ServerSpec) { s.BootVolume.Size = 20 }), want: ServerChange{Grow: []Growth{{"boot", 20}}}, effect: "spec.bootVolume"},
		"boot size as it is":  {spec: spec(func(s *ServerSpec) { s.BootVolume.Size = 10 }), effect: "spec.bootVolume"},
		"boot shrinks":        {spec: spec(func(s *ServerSpec) { s.BootVolume.Size = 9 }), refused: "spec.bootVolume"},
		"boot type":           {spec: spec(func(s *ServerSpec) { s.BootVolume.Type = "raw" }), refused: "spec.bootVolume"},
		"disk grows":          {spec: spec(func(s *ServerSpec) { s.Storage[0].Spec = &VolumeSpec{Type: "qcow2", Size: 6} }), want: ServerChange{Grow: []Growth{{"scratch", 6}}}, effect: "spec.storage scratch"},
		"disk shrinks":        {spec: spec(func(s *ServerSpec) { s.Storage[0].Spec = &VolumeSpec{Type: "qcow2", Size: 4} }), refused: "spec.storage scratch"},
		"disk of other type":  {spec: spec(func(s *ServerSpec) { s.Storage[0].Spec = &VolumeSpec{Type: "raw", Size: 5} }), refused: "spec.storage scratch"},
		"own disk is gone":    {spec: spec(func(s *ServerSpec) { s.Storage = s.Storage[1:] }), refused: "spec.storage scratch"},
		"own becomes volume":  {spec: spec(func(s *ServerSpec) { s.Storage[0].Spec = nil }), refused: "spec.storage scratch"},
		"volume is gone":      {spec: spec(func(s *ServerSpec) { s.Storage = s.Storage[:1] }), want: ServerChange{DropDisks: []string{"vol"}}, effect: "spec.storage vol"},
		"volume is new":       {spec: spec(func(s *ServerSpec) { s.Storage = append(s.Storage, Storage{Name: "x"}) }), want: ServerChange{AddDisks: []Storage{{Name: "x"}}}, effect: "spec.storage x"},
		"another order":       {spec: spec(func(s *ServerSpec) { s.Storage[0], s.Storage[1] = s.Storage[1], s.Storage[0] }), effect: "spec.storage"},
		"NIC is new":          {spec: spec(func(s *ServerSpec) { s.NetworkInterface = append(s.NetworkInterface, NIC{Name: "c-0"}) }), want: ServerChange{AddNICs: []string{"c-0"}}, effect: "spec.networkInterface c-0"},
		"NIC is gone":         {spec: spec(func(s *ServerSpec) { s.NetworkInterface = s.NetworkInterface[:1] }), want: ServerChange{DropNICs: []string{"b-0"}}, effect: "spec.networkInterface b-0"},
		"NIC differs":         {spec: spec(func(s *ServerSpec) { s.NetworkInterface[0].RateMbps = 5 }), want: ServerChange{TuneNICs: []string{"a-0"}}, effect: "spec.networkInterface a-0"},
		"NIC's network":       {spec: spec(func(s *ServerSpec) { s.NetworkInterface[0].Network = "b" }), refused: "spec.networkInterface a-0"},
		"NIC's address":       {spec: spec(func(s *ServerSpec) { s.NetworkInterface[0].Address = []string{"10.0.0.9"} }), refused: "spec.networkInterface a-0"},
		"NIC's MAC":           {spec: spec(func(s *ServerSpec) { s.NetworkInterface[0].MAC = "52:54:00:00:00:01" }), refused: "spec.networkInterface a-0"},
		"playbook's folder":   {spec: declared(), bundle: "sha256:11", want: ServerChange{Playbook: true}, effect: "the playbook's folder"},
		"playbook's settings": {spec: spec(func(s *ServerSpec) { s.Ansible = &Ansible{Playbook: []string{"b.yaml"}} }), want: ServerChange{Playbook: true}, effect: "spec.ansible"},
		"playbook is gone":    {spec: spec(func(s *ServerSpec) { s.Ansible = nil }), effect: "spec.ansible"},
		"keys":                {spec: spec(func(s *ServerSpec) { s.Auth.PublicKey = []string{"k"} }), effect: "spec.auth"},
		"autostart":           {spec: spec(func(s *ServerSpec) { s.Autostart = true }), effect: "spec.autostart"},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.meta.Name == "" {
				tc.meta.Name = "db"
			}
			if tc.bundle == "" {
				tc.bundle = "sha256:00"
			}
			c, err := ChangeServer(builtAs(t, declared()), tc.meta, tc.spec, tc.bundle)
			require.NoError(t, err)
			require.False(t, c.Empty())
			if tc.refused != "" {
				require.Len(t, c.Refused, 1)
				require.Equal(t, tc.refused, c.Refused[0].Field)
				require.ErrorIs(t, c.Err("server/db"), errs.ErrInvalid)
				require.ErrorContains(t, c.Err("server/db"), "server/db: update: ")
				return
			}
			require.NoError(t, c.Err("server/db"))
			require.Len(t, c.Effects, 1)
			require.Equal(t, tc.effect, c.Effects[0].Field)
			c.Effects = nil
			require.Equal(t, tc.want, c)
		})
	}
}

func TestAVolumeIsDetachedOnlyWhileTheGuestIsOff(t *testing.T) {
	c := ServerChange{DropDisks: []string{"vol"}}
	require.NoError(t, c.NeedsRestart("server/db", true))
	require.ErrorContains(t, c.NeedsRestart("server/db", false), "apply again with --restart")
}

func TestARunningServerKeepsANICThatItKnows(t *testing.T) {
	spec := declared()
	spec.NetworkInterface = []NIC{{Name: "c-0", Network: "c"}}
	c, err := ChangeServer(builtAs(t, declared()), Metadata{Name: "db"}, spec, "sha256:00")
	require.NoError(t, err)
	require.NoError(t, c.NeedsRestart("server/db", true))
	require.ErrorContains(t, c.NeedsRestart("server/db", false), "every NIC that the server has goes (a-0, b-0)")
}
