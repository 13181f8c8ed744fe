package manifest

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// standing is a world with a network, a server on it, a volume that it has, and an image.
func standing(t *testing.T) *Snapshot {
	t.Helper()
	spec := func(v any) json.RawMessage {
		data, err := json.Marshal(v)
		require.NoError(t, err)
		return data
	}
	record := func(kind Kind, name string, s any, status Status) Record {
		return Record{APIVersion: APIVersion, Kind: kind, Metadata: RecordMeta{Metadata: Metadata{Name: name}}, Spec: spec(s), Status: status}
	}
	return NewSnapshot([]Record{
		record(KindNetwork, "office", NetworkSpec{Mode: ModeNAT}, Status{Network: &NetworkStatus{Mode: ModeNAT, Subnets: []Subnet{{CIDR: "172.16.100.0/24", Gateway: "172.16.100.1"}}}}),
		record(KindNetwork, "cell", NetworkSpec{Mode: ModeIsolated, Subnets: []Subnet{{CIDR: "10.9.0.0/24", Gateway: "10.9.0.1"}}}, Status{}),
		record(KindServer, "old", ServerSpec{NetworkInterface: []NIC{{Network: "cell", Address: []string{"10.9.0.7"}}}},
			Status{Ports: []Port{{Network: "office", MAC: "52:54:00:00:00:07", Addresses: []string{"172.16.100.7/24"}}}}),
		record(KindNetwork, "broken", NetworkSpec{Mode: ModeNAT, Subnets: []Subnet{{CIDR: "10.8.0.0/24"}}}, Status{Phase: PhaseFailed}),
		record(KindNetwork, "leaving", NetworkSpec{Mode: ModeNAT}, Status{Phase: PhaseDeleting}),
		record(KindServer, "wreck", ServerSpec{NetworkInterface: []NIC{{Network: "cell", Address: []string{"10.9.0.8"}}}}, Status{Phase: PhaseFailed}),
		record(KindVolume, "disk", VolumeSpec{Size: 10}, Status{Volume: &VolumeStatus{SizeGiB: 10, AttachedTo: "server/old"}}),
		record(KindImage, "large", ImageSpec{}, Status{Image: &ImageStatus{VirtualGiB: 20}}),
	}, []string{"ubuntu24.04", "debian12"}, true)
}

func TestReferencesAndAddressesAreCheckedAgainstWhatIsKnown(t *testing.T) {
	nic := func(spec string) string { return serverText("networkInterface: [{" + spec + "}]") }
	for _, test := range []struct {
		name string
		text string
		want []string // of each problem; none: valid
	}{
		{"all known", serverText("mmImage: large\nnetworkInterface: [{networkname: office, address: 172.16.100.8}]\ndependsOn: [server/old]"), nil},
		{"image nobody has", serverText("mmImage: windows95"), []string{`spec.mmImage: image "windows95" is neither in this apply nor known; add an Image document`}},
		{"image of the catalogue, nearly right", serverText("mmImage: debian12x"), []string{`spec.mmImage: image "debian12x" is neither in this apply nor known; did you mean debian12?`}},
		{"network nearly right", nic("networkname: offices"), []string{"did you mean office?"}},
		{"volume without spec", serverText("storage: [{metadata: {name: nope}}]"), []string{`volume "nope" is neither in this apply nor known; add a Volume document, or a spec with a size here`}},
		{"dependsOn unknown", serverText("dependsOn: [server/nope]"), []string{`spec.dependsOn[0]: server "nope" is neither`}},
		{"address of a known server, by allocation", nic("networkname: office, address: 172.16.100.7"), []string{"172.16.100.7 is already taken by server/old;"}},
		{"address of a known server, by its spec", nic("networkname: cell, address: 10.9.0.7"), []string{"10.9.0.7 is already taken by server/old;"}},
		{"same address on another network", documents(nic("networkname: other, address: 10.9.0.7"), networkText("other", "mode: isolated\nsubnets: [{cidr: 10.9.0.0/24}]")), nil},
		{"the server's own address again", "apiVersion: v1\nkind: Server\nmetadata: {name: old}\nspec: {networkInterface: [{networkname: office, address: 172.16.100.7, mac: '52:54:00:00:00:07'}], storage: [{metadata: {name: disk}}]}", nil},
		{"address of a server that failed and holds nothing", nic("networkname: cell, address: 10.9.0.8"), nil},
		{"failed network", nic("networkname: broken"), []string{`network "broken" has failed; apply it again`}},
		{"failed network applied again", documents(nic("networkname: broken"), networkText("broken", "mode: nat")), nil},
		{"subnet of a failed network", networkText("n", "subnets: [{cidr: 10.8.0.0/16}]"), nil},
		{"network on its way out", nic("networkname: leaving"), []string{`network "leaving" is being deleted`}},
		{"gateway", nic("networkname: office, address: 172.16.100.1"), []string{`172.16.100.1 is the gateway of network "office"`}},
		{"network address", nic("networkname: office, address: 172.16.100.0"), []string{"172.16.100.0 is the network's own address"}},
		{"broadcast", nic("networkname: office, address: 172.16.100.255"), []string{"172.16.100.255 is the broadcast address of 172.16.100.0/24"}},
		{"outside", nic("networkname: office, address: 172.16.101.3"), []string{`172.16.101.3 is outside network "office" (172.16.100.0/24)`}},
		{"another prefix length", nic("networkname: office, address: 172.16.100.9/16"), []string{`its prefix length is 16, but network "office" has 172.16.100.0/24; write /24`}},
		{"another netmask", nic("networkname: office, address: 172.16.100.9, netmask: 255.255.0.0"), []string{"its prefix length is 16"}},
		{"route through a stranger", nic("networkname: office, routes: [{to: default, via: 10.0.0.1}]"), []string{`spec.networkInterface[0].routes[0].via: 10.0.0.1 is outside network "office"`}},
		{"address where no subnet is chosen yet", documents(nic("networkname: auto, address: 172.16.101.3"), "apiVersion: v1\nkind: Network\nmetadata: {name: auto}"), []string{`network "auto" has no subnet yet`}},
		{"address on a network applied again without subnets", documents(nic("networkname: office, address: 172.16.100.9"), "apiVersion: v1\nkind: Network\nmetadata: {name: office}"), nil},
		{"mac of a known server", nic("networkname: office, mac: '52:54:00:00:00:07'"), []string{"52:54:00:00:00:07 is already taken by server/old"}},
		{"volume of a known server", serverText("storage: [{metadata: {name: disk}}]"), []string{`volume "disk" is attached to server/old`}},
		{"shrinking a volume", volumeText("disk", "size: 5"), []string{`volume "disk" has 10 GiB already, and a volume is never shrunk; write at least 10`}},
		{"growing a volume", volumeText("disk", "size: 15"), nil},
		{"boot volume smaller than its image", serverText("mmImage: large\nbootVolume: {spec: {size: 19}}"), []string{"19 GiB is smaller than image large (20 GiB)"}},
		{"overlap with a known network", networkText("n", "subnets: [{cidr: 172.16.0.0/16}]"), []string{`172.16.0.0/16 overlaps network "office" (172.16.100.0/24) in the same routing domain`}},
		{"isolated networks may overlap", networkText("n", "mode: isolated\nsubnets: [{cidr: 172.16.0.0/16}]"), nil},
		{"overlap inside a network", networkText("n", "subnets: [{cidr: 10.1.0.0/16}, {cidr: 10.1.9.0/24}]"), []string{"spec.subnets[1].cidr: 10.1.9.0/24 overlaps 10.1.0.0/16 of the same network"}},
		{"one bridge for two networks", documents(networkText("n", "bridgeName: br-x"), networkText("m", "bridgeName: br-x")), []string{`bridge br-x is network "n"'s`}},
		{"declared twice", documents(serverText("cpu: 1"), serverText("cpu: 2")), []string{"metadata.name: server/a is declared twice (first in -, line 1)"}},
		{"one volume for two servers", documents(serverText("storage: [{metadata: {name: v}}]"), volumeText("v", "size: 1"), "apiVersion: v1\nkind: Server\nmetadata: {name: b}\nspec: {storage: [{metadata: {name: v}}]}"), []string{`server/b: spec.storage[0].metadata.name: volume "v" is attached to server/a`}},
		{"same address twice on one server", nic("networkname: office, address: [172.16.100.9, 172.16.100.9]"), []string{"172.16.100.9 is given twice"}},
		{"one address for two NICs", serverText("networkInterface: [{networkname: office, address: 172.16.100.9}, {networkname: office, address: 172.16.100.9}]"), []string{"spec.networkInterface[1].address: 172.16.100.9 is already taken by server/a of this apply"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			opts := Options{Stdin: strings.NewReader(test.text), WorkDir: t.TempDir()}
			_, problems := Check(t.Context(), []string{"-"}, opts, standing(t))
			require.Len(t, problems, len(test.want), problems.Error())
			for i, want := range test.want {
				require.Contains(t, problems[i].String(), want)
			}
		})
	}
}

func TestReferenceProblemsSayWhenNobodyWasAsked(t *testing.T) {
	set, problems := Load(t.Context(), []string{"-"}, Options{Stdin: strings.NewReader(serverText("networkInterface: [{networkname: far}]"))})
	require.NoError(t, problems.Err())
	problems = Validate(set, NewSnapshot(nil, []string{"ubuntu24.04"}, false))
	require.Len(t, problems, 1)
	require.Contains(t, problems[0].Next, "no gateway answered")
}

func TestValidateWithoutKnownDoesNotPanic(t *testing.T) {
	set, problems := Load(t.Context(), []string{"-"}, Options{Stdin: strings.NewReader(serverText("cpu: 1"))})
	require.NoError(t, problems.Err())
	require.Len(t, Validate(set, nil), 1, "only the image is unknown")
}

func TestPlaybookAndInventoryMustBeThereBeforeAnythingIsBuilt(t *testing.T) {
	dir := folder(t, "p.yaml", "- hosts: all\n")
	for _, test := range []struct{ spec, want string }{
		{"ansible: {playbook: p.yaml}", ""},
		{"ansible: {playbook: [p.yaml, q.yaml]}", "spec.ansible.playbook[1]: q.yaml does not exist (looked for beside this file); nothing is built"},
		{"ansible: {playbook: p.yaml, inventory: hosts}", "spec.ansible.inventory: hosts does not exist"},
		{"ansible: {playbook: .}", "spec.ansible.playbook: . is not a regular file"},
		{"ansible: {playbook: p.yaml, inventory: .}", ""},
	} {
		_, problems := loadText(t, serverText(test.spec), Options{WorkDir: dir})
		if test.want == "" {
			require.NoError(t, problems.Err())
			continue
		}
		require.Len(t, problems, 1)
		require.Contains(t, problems[0].String(), test.want)
	}
}
