package manifest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const keyOne = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIIrMBfnb2TRrQb+LY3vgFwjALCYIw7ewiIUu0qL5EeQt one@example.test"

// serverText is a Server document with a spec; lines of spec are indented by two.
func serverText(spec string) string {
	return "apiVersion: v1\nkind: Server\nmetadata: {name: a}\nspec:\n" + indent(spec)
}

func networkText(name, spec string) string {
	return "apiVersion: v1\nkind: Network\nmetadata: {name: " + name + "}\nspec:\n" + indent(spec)
}

func volumeText(name, spec string) string {
	return "apiVersion: v1\nkind: Volume\nmetadata: {name: " + name + "}\nspec:\n" + indent(spec)
}

func indent(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString("  " + line)
	}
	return b.String()
}

func documents(texts ...string) string { return strings.Join(texts, "\n---\n") }

func TestDefaultsFillWhatIsLeftOut(t *testing.T) {
	set, problems := loadText(t, documents(
		"apiVersion: v1\nkind: Server\nmetadata: {name: a}\n",
		"apiVersion: v1\nkind: Network\nmetadata: {name: net-with-a-long-name}\n",
		volumeText("v", "size: 3"),
		"apiVersion: v1\nkind: Image\nmetadata: {name: debian12.5}\nspec: {sourceUrl: https://example.test/d.qcow2}",
	), Options{})
	require.NoError(t, problems.Err())
	require.Len(t, set.Documents, 4)
	require.Equal(t, &ServerSpec{
		CPU: 2, Memory: 2048, Image: "ubuntu24.04", BootVolume: BootVolume{Type: "qcow2"},
		NetworkInterface: []NIC{{Name: "host-bridge-0", Network: "host-bridge"}},
		Autostart:        true, OnFailure: OnFailureRollback, Readiness: ReadinessCloudInit, Firmware: "bios",
	}, set.Documents[0].Server)
	require.Equal(t, &NetworkSpec{
		Mode: ModeNAT, BridgeName: BridgeName("net-with-a-long-name"), DNS: DNS{Domain: "net-with-a-long-name"}, MTU: 1500, PortSecurity: true,
	}, set.Documents[1].Network)
	require.Equal(t, &VolumeSpec{Type: "qcow2", Size: 3, Kind: "data"}, set.Documents[2].Volume)
	require.Equal(t, &ImageSpec{SourceURL: "https://example.test/d.qcow2", Format: "qcow2"}, set.Documents[3].Image)
	require.Equal(t, "-", set.Documents[0].File)
	require.Equal(t, "server/a", set.Documents[0].Ref())
}

func TestGuidesManifestInNormalForm(t *testing.T) {
	set, problems := Check(t.Context(), []string{"testdata/cases/valid"}, Options{}, world())
	require.NoError(t, problems.Err())
	var out strings.Builder
	for _, doc := range set.Documents {
		spec, err := doc.SpecJSON()
		require.NoError(t, err)
		again, err := doc.SpecJSON()
		require.NoError(t, err)
		require.Equal(t, spec, again)
		out.WriteString(doc.Ref() + " " + string(spec) + "\n")
	}
	golden(t, "testdata/golden/valid.json.txt", out.String())
}

func TestAliasesSizesAndSingleValuesReachTheNormalForm(t *testing.T) {
	set, problems := loadText(t, documents(
		serverText(`memory: 1.5GiB
image: debian12
auth: {url: "github:octo-cat", publicKey: "`+keyOne+`", user: ops}
bootVolume: {spec: {size: 1TiB, type: raw}}
networkInterface:
  - networkname: n
    address: 10.1.0.9/24
    vlans: 5
    mac: 52-54-00-AA-BB-CC
  - networkname: n
    address: [10.1.0.10]
    netmask: 255.255.255.0
    routes: [{to: 192.168.7.9/16, via: 10.1.0.1}]
ansible: {playbook: p.yaml, extraVars: {n: 1, deep: {list: [a, 2.5, true, null]}}, timeout: 90m}
`),
		networkText("n", "iPNetworkAddress: 10.1.0.77/24"),
	), Options{WorkDir: folder(t, "p.yaml", "- hosts: all")})
	require.NoError(t, problems.Err())
	server := set.Documents[0].Server
	require.Equal(t, 1536, server.Memory)
	require.Equal(t, "debian12", server.Image)
	require.Equal(t, BootVolume{Type: "raw", Size: 1024}, server.BootVolume)
	require.Equal(t, Auth{URL: []string{"https://github.com/octo-cat.keys"}, PublicKey: []string{keyOne}, Users: []string{"ops"}}, server.Auth)
	require.Equal(t, NIC{Name: "n-0", Network: "n", Address: []string{"10.1.0.9"}, VLANs: []int{5}, MAC: "52:54:00:aa:bb:cc"}, server.NetworkInterface[0])
	require.Equal(t, NIC{Name: "n-1", Network: "n", Address: []string{"10.1.0.10"}, Routes: []Route{{To: "192.168.0.0/16", Via: "10.1.0.1"}}}, server.NetworkInterface[1])
	require.Equal(t, map[string]any{"n": int64(1), "deep": map[string]any{"list": []any{"a", 2.5, true, nil}}}, server.Ansible.ExtraVars)
	require.Equal(t, 3, server.Ansible.Retries)
	require.Equal(t, Duration("90m"), server.Ansible.Timeout)
	require.Equal(t, OnFailureHold, server.Ansible.OnFailure)
	require.Equal(t, []Subnet{{CIDR: "10.1.0.0/24", Gateway: "10.1.0.1"}}, set.Documents[1].Network.Subnets)
}

func TestNetworkWithoutAGatewayIsIsolatedByDefault(t *testing.T) {
	set, problems := loadText(t, networkText("n", "subnets: [{cidr: 10.1.0.0/24, gateway: none}]"), Options{})
	require.NoError(t, problems.Err())
	require.Equal(t, ModeIsolated, set.Documents[0].Network.Mode)
}

func TestOSVariantIsTakenWithADeprecationWarning(t *testing.T) {
	set, problems := loadText(t, serverText("osVariant: debian12"), Options{})
	require.NoError(t, problems.Err())
	require.Equal(t, "debian12", set.Documents[0].Server.Image)
	require.Len(t, set.Warnings, 1)
	require.Equal(t, "-:5:3: server/a: spec.osVariant: deprecated name; write mmImage", set.Warnings[0].String())
}

func TestMergeKeysAnchorsAndListsOfThemWork(t *testing.T) {
	set, problems := loadText(t, documents(serverText(`networkInterface:
  - &base {networkname: n, rateMbps: 10, dhcp4: false}
  - &more {networkname: n, rateMbps: 20, vlans: [7]}
  - <<: [*base, *more]
    name: third
  - <<: *more
    rateMbps: 30
`), networkText("n", "mode: nat")), Options{})
	require.NoError(t, problems.Err())
	nics := set.Documents[0].Server.NetworkInterface
	require.Equal(t, NIC{Name: "third", Network: "n", RateMbps: 10, VLANs: []int{7}}, nics[2], "the earlier mapping of the list wins")
	require.Equal(t, NIC{Name: "n-3", Network: "n", RateMbps: 30, VLANs: []int{7}}, nics[3], "the mapping's own key wins")
}

func TestAnchorsEndWithTheirDocument(t *testing.T) {
	_, problems := loadText(t, documents(serverText("cpu: &c 3"), "apiVersion: v1\nkind: Server\nmetadata: {name: b}\nspec: {cpu: *c}"), Options{})
	require.Len(t, problems, 1)
	require.Contains(t, problems[0].String(), "server/b: spec.cpu: alias *c has no anchor before it")
}

func TestNullMeansLeftOut(t *testing.T) {
	set, problems := loadText(t, serverText("cpu:\nmemory: ~\nnetworkInterface: null\n"), Options{})
	require.NoError(t, problems.Err())
	require.Equal(t, 2, set.Documents[0].Server.CPU)
	require.Equal(t, HostBridge, set.Documents[0].Server.NetworkInterface[0].Network)
}

func TestLenientTurnsUnknownFieldsIntoWarningsButNotWhatIsUnsupported(t *testing.T) {
	text := serverText("cpus: 3\ncount: 2\n")
	_, problems := loadText(t, text, Options{})
	require.Len(t, problems, 2)
	set, problems := loadText(t, text, Options{Lenient: true})
	require.Len(t, problems, 1)
	require.Contains(t, problems[0].String(), "spec.count: not supported yet")
	require.Len(t, set.Warnings, 1)
	require.Contains(t, set.Warnings[0].String(), "spec.cpus: unknown field; did you mean cpu?")
}

func TestEveryRowOfTheUnsupportedTableIsRefusedByName(t *testing.T) {
	for _, row := range unsupported {
		t.Run(row.Path+row.Value, func(t *testing.T) {
			parts := strings.Split(strings.TrimPrefix(row.Path, "spec."), ".")
			leaf := row.Value
			if leaf == "" {
				leaf = "x"
			}
			for i := len(parts) - 1; i >= 0; i-- {
				name, list := strings.CutSuffix(parts[i], "[]")
				if list {
					leaf = "[" + leaf + "]"
				}
				leaf = "{" + name + ": " + leaf + "}"
			}
			_, problems := loadText(t, "apiVersion: v1\nkind: "+string(row.Kind)+"\nmetadata: {name: a}\nspec: "+leaf, Options{Lenient: true})
			var said bool
			for _, p := range problems {
				said = said || indexPattern.ReplaceAllString(p.Path, "[]") == row.Path && strings.Contains(p.Message, "not supported yet") && p.Next == row.Instead
			}
			require.True(t, said, problems.Error())
		})
	}
	for kind := range unsupportedKinds {
		_, problems := loadText(t, "apiVersion: v1\nkind: "+kind+"\nmetadata: {name: a}", Options{})
		require.Len(t, problems, 1)
		require.Contains(t, problems[0].Message, "kind "+kind+" is not supported yet")
	}
}

func TestKeysAreReadFromBesideTheManifest(t *testing.T) {
	dir := folder(t, "login.pub", "# mine\n\n"+keyOne+"\r\n"+keyOne+"\n")
	set, problems := loadText(t, serverText("auth: {publicKey: 'file:login.pub'}"), Options{WorkDir: dir})
	require.NoError(t, problems.Err())
	require.Equal(t, []string{keyOne, keyOne}, set.Documents[0].Server.Auth.PublicKey)

	require.NoError(t, os.WriteFile(filepath.Join(dir, "big.pub"), make([]byte, MaxInlineFileBytes+1), 0o600))
	_, problems = loadText(t, serverText("auth: {publicKey: ['file:big.pub', 'file:none.pub', 'file:.']}"), Options{WorkDir: dir})
	require.Len(t, problems, 3)
	require.Contains(t, problems[0].String(), `read "big.pub": larger than 32 KiB`)
	require.Contains(t, problems[1].String(), `read "none.pub": no such file or directory`)
	require.Contains(t, problems[2].String(), `read ".": not a regular file`)
}

func TestAPrivateKeyIsNeverShown(t *testing.T) {
	private := "-----BEGIN OPENSSH PRIVATE KEY----- b3BlbnNzaC1rZXktdjEAAAAABG5vbmU"
	_, problems := loadText(t, serverText("auth: {publicKey: '"+private+"'}"), Options{})
	require.Len(t, problems, 1)
	require.NotContains(t, problems.Error(), "PRIVATE KEY-----")
	require.Contains(t, problems.Error(), `"-----BEGIN OPENSSH P…"`)
}

func TestCloudInitFilesAreReadInAndChecked(t *testing.T) {
	dir := folder(t, "user.yaml", "#cloud-config\npackages: [tree]\n")
	set, problems := loadText(t, serverText("cloudInit: {userData: 'file:user.yaml', networkConfig: 'version: 2'}"), Options{WorkDir: dir})
	require.NoError(t, problems.Err())
	require.Equal(t, &CloudInit{UserData: "#cloud-config\npackages: [tree]\n", NetworkConfig: "version: 2"}, set.Documents[0].Server.CloudInit)
}

func TestEqualManifestsGiveEqualNormalForms(t *testing.T) {
	one, problems := loadText(t, serverText("mmImage: debian12\nmemory: 2048\nauth: {users: [ops]}"), Options{})
	require.NoError(t, problems.Err())
	other, problems := loadText(t, serverText("memory: 2GiB\nauth: {user: ops}\nimage: debian12"), Options{})
	require.NoError(t, problems.Err())
	a, err := one.Documents[0].SpecJSON()
	require.NoError(t, err)
	b, err := other.Documents[0].SpecJSON()
	require.NoError(t, err)
	require.JSONEq(t, string(a), string(b))
}

// folder makes a folder with one file in it.
func folder(t *testing.T, name, text string) string {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	return dir
}
