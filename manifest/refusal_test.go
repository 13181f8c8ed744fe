package manifest

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// refusals are manifests with something wrong in them; the golden file shows what each is told.
var refusals = []struct {
	name string
	text string
}{
	{"not yaml", "apiVersion: v1\nkind: Server\n  metadata: [\n"},
	{"not a mapping", "- one\n- two\n"},
	{"plain text", "<!DOCTYPE html><html><body>Not Found</body></html>"},
	{"no kind", "apiVersion: v1\nmetadata: {name: a}\n"},
	{"kind in the wrong case", "apiVersion: v1\nkind: server\nmetadata: {name: a}\n"},
	{"unknown kind", "apiVersion: v1\nkind: Deployment\nmetadata: {name: a}\n"},
	{"later api version", "apiVersion: v2\nkind: Server\nmetadata: {name: a}\n"},
	{"no metadata", "apiVersion: v1\nkind: Server\n"},
	{"no name", "apiVersion: v1\nkind: Server\nmetadata: {labels: {a: b}}\n"},
	{"name that is a number", "apiVersion: v1\nkind: Server\nmetadata: {name: 7}\n"},
	{"name too long", "apiVersion: v1\nkind: Server\nmetadata: {name: " + strings.Repeat("a", 64) + "}\n"},
	{"terminal escape in a name", "apiVersion: v1\nkind: Server\nmetadata: {name: \"a\\e[31mb\"}\n"},
	{"bad label", "apiVersion: v1\nkind: Server\nmetadata: {name: a, labels: {\"a b\": c, d: \"e f\", g: 1}}\n"},
	{"image pinned to a host", "apiVersion: v1\nkind: Image\nmetadata: {name: a, nodeName: h}\nspec: {sourceUrl: https://x.test/a}\n"},
	{"unknown fields at each level", serverText("cpus: 1\nnetworkInterface: [{networkName: host-bridge}]\nauth: {pubkey: x}\nwhatever: 1\n")},
	{"same field by two names", serverText("mmImage: debian12\nimage: ubuntu24.04\n")},
	{"duplicates at depth", serverText("auth:\n  users: [a]\n  users: [b]\n")},
	{"wrong shapes", serverText("cpu: two\nmemory: [1]\nautostart: yes\nmmImage: 24.04\nstorage: {a: b}\nauth: 7\nnetworkInterface: host-bridge\n")},
	{"ranges", serverText("cpu: 513\nmemory: 63\nbootVolume: {spec: {size: 0}}\n")},
	{"sizes", serverText("memory: 20GB\nbootVolume: {spec: {size: 1500MiB}}\nstorage: [{metadata: {name: d}, spec: {size: 1e9GiB}}]\n")},
	{"enums", serverText("onFailure: hodl\nreadiness: pingable\nfirmware: uefi\nbootVolume: {spec: {type: vmdk}}\n")},
	{"durations", serverText("deadline: 2 hours\n")},
	{"empty list entries", serverText("networkInterface:\n  -\ndependsOn: [~]\n")},
	{"duplicate storage", serverText("storage:\n  - {metadata: {name: d}, spec: {size: 1}}\n  - {metadata: {name: d}, spec: {size: 1}}\n")},
	{"storage without size", serverText("storage: [{metadata: {name: d}, spec: {type: raw}}]\n")},
	{"playbook without waiting for a login", serverText("readiness: running\nansible: {playbook: p.yaml}\n")},
	{"empty playbook", serverText("ansible: {playbook: []}\n")},
	{"key urls", serverText("auth:\n  url: [http://keys.test/a, ftp://keys.test/a, 'github:-x', not-a-url, 'https://u:hunter2@keys.test/a']\n")},
	{"logins", serverText("auth: {users: [Root, 'a b']}\n")},
	{"unknown crypt method", serverText("auth: {rootPassword: $1$abc$defdefdefdefdefdef}\n")},
	{"user data cloud-init would ignore", serverText("cloudInit: {userData: 'packages: [tree]'}\n")},
	{"broken user data", serverText("cloudInit:\n  userData: |\n    #cloud-config\n    a: [\n  networkConfig: |\n    - a\n")},
	{"user data with a key twice", serverText("cloudInit:\n  userData: |\n    #cloud-config\n    a: 1\n    a: 2\n")},
	{"NIC values", serverText(`networkInterface:
  - networkname: host-bridge
    address: [300.1.1.1, 10.0.0.1/33, fe80::1%eth0, "::ffff:1.2.3.4"]
    mac: 01:00:5e:00:00:01
    vlans: [0, 7, 7]
    nativeVlan: 4095
    rateMbps: 0
    routes: [{to: everywhere, via: here}]
    nameservers: {addresses: [x], search: ["-"]}
`)},
	{"netmask that does not parse", serverText("networkInterface: [{networkname: host-bridge, address: 10.1.0.4, netmask: 255.255.0.255}]\n")},
	{"netmask without address", serverText("networkInterface: [{networkname: host-bridge, netmasklen: 24}]\n")},
	{"native VLAN of an access port", serverText("networkInterface: [{networkname: host-bridge, vlans: 7, nativeVlan: 7}]\n")},
	{"NIC names", serverText("networkInterface: [{networkname: host-bridge, name: A_b}, {networkname: host-bridge, name: x}, {networkname: host-bridge, name: x}]\n")},
	{"subnets", networkText("n", `subnets:
  - cidr: 10.1.0.0
  - cidr: 10.2.0.0/31
  - cidr: 10.0.0.0/7
  - cidr: 224.0.0.0/24
  - cidr: 10.3.0.0/24
    gateway: 10.4.0.1
    range: 10.3.0.9-10.3.0.2
    reserved: [10.5.0.1, x]
  - cidr: 10.6.0.0/24
    gateway: 10.6.0.255
`)},
	{"both subnet forms", networkText("n", "subnets: [{cidr: 10.1.0.0/24}]\niPNetworkAddress: 10.2.0.0/24\n")},
	{"older subnet form", networkText("n", "iPNetworkAddress: 10.2.0.0/255.255.255.0\n")},
	{"bridge name", networkText("n", "bridgeName: br-much-too-long-name\n") + "---\n" + networkText("m", "bridgeName: 'br 1'\n")},
	{"network values", networkText("n", "mtu: 100\nvlan: 5000\ndns: {domain: A, forwarders: [x]}\nmode: overlay\nvni: 5\n")},
	{"volume kinds", volumeText("v", "size: 1\nkind: os\n") + "---\n" + volumeText("w", "size: 1\nimage: debian12\n") + "---\n" + volumeText("x", "kind: os\nimage: debian12\ntype: raw\nsize: 9\n")},
	{"image values", "apiVersion: v1\nkind: Image\nmetadata: {name: a}\nspec: {sourceUrl: debian.qcow2, sha256: abc, checksumUrl: https://x.test/SUMS, user: Root}\n"},
	{"merge of a number", serverText("<<: 7\ncpu: 1\n")},
	{"alias without anchor", serverText("cpu: *none\n")},
	{"alias of itself", serverText("ansible: {playbook: p.yaml, extraVars: {a: &a [*a]}}\n")},
	{"application tag", serverText("mmImage: !!python/object:os.system debian12\n")},
	{"key that is no text", serverText("? [a]\n: b\n")},
	{"nested too deep", serverText("ansible: {playbook: p.yaml, extraVars: {a: " + strings.Repeat("[", 50) + strings.Repeat("]", 50) + "}}\n")},
}

func TestRefusalsSayWhereWhatAndHowToMend(t *testing.T) {
	var out strings.Builder
	for _, refusal := range refusals {
		t.Run(refusal.name, func(t *testing.T) {
			dir := folder(t, "p.yaml", "- hosts: all\n")
			_, problems := loadText(t, refusal.text, Options{WorkDir: dir})
			require.NotEmpty(t, problems)
			out.WriteString("## " + refusal.name + "\n" + problems.Error() + "\n\n")
			for _, p := range problems {
				require.NotZero(t, p.Line, p.String())
				require.NotContains(t, p.Text(), "\x1b")
				require.NotContains(t, p.Text(), "hunter2")
			}
		})
	}
	golden(t, "testdata/golden/refusals.txt", out.String())
}
