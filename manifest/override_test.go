package manifest

import (
	"testing"

	"github.com/stretchr/testify/require"
)

const twoServers = `apiVersion: v1
kind: Server
metadata: {name: a}
spec:
  osVariant: ubuntu24.04
  networkInterface: [&nic {networkname: n}, *nic]
---
apiVersion: v1
kind: Server
metadata: {name: b}
---
apiVersion: v1
kind: Network
metadata: {name: n}
spec: {subnets: [{cidr: 10.1.0.0/24}]}
`

func TestSetChangesEveryServerOrTheOneNamed(t *testing.T) {
	set, problems := loadText(t, twoServers, Options{Set: []string{
		"spec.mmImage=debian12",
		"spec.memory=3GiB",
		"spec.auth.url=[github:one, 'https://keys.test/two']",
		"server/b:spec.cpu=4",
		"srv/b:spec.autostart=false",
		"server/b:spec.ansible.extraVars.port=3306",
		"server/b:spec.ansible.playbook=p.yaml",
		"server/b:spec.bootVolume={spec: {size: 30}}",
		"server/a:spec.networkInterface[1].address=10.1.0.9",
		"server/a:metadata.labels.tier=1",
		"network/n:spec.mtu=1400",
	}, WorkDir: folder(t, "p.yaml", "- hosts: all")})
	require.NoError(t, problems.Err())
	a, b := set.Documents[0], set.Documents[1]
	require.Equal(t, "debian12", a.Server.Image, "a --set wins over another name of the field")
	require.Equal(t, "debian12", b.Server.Image)
	require.Equal(t, 3072, a.Server.Memory)
	require.Equal(t, []string{"https://github.com/one.keys", "https://keys.test/two"}, a.Server.Auth.URL)
	require.Equal(t, 2, a.Server.CPU)
	require.Equal(t, 4, b.Server.CPU)
	require.False(t, b.Server.Autostart)
	require.Equal(t, map[string]any{"port": int64(3306)}, b.Server.Ansible.ExtraVars)
	require.Equal(t, 30, b.Server.BootVolume.Size)
	require.Empty(t, a.Server.NetworkInterface[0].Address, "an alias of the value that was changed is not")
	require.Equal(t, []string{"10.1.0.9"}, a.Server.NetworkInterface[1].Address)
	require.Equal(t, map[string]string{"tier": "1"}, a.Metadata.Labels, "text fields take any text")
	require.Equal(t, 1400, set.Documents[2].Network.MTU)
}

func TestSetSaysWhichPathIsWrong(t *testing.T) {
	for flag, want := range map[string]string{
		"spec.cpu=lots":                     `--set spec.cpu: server/b: spec.cpu: must be a whole number, but is "lots"`,
		"spec.autostart=yes":                "--set spec.autostart: server/b: spec.autostart: must be true or false",
		"spec.mmImag=debian12":              "--set spec.mmImag: server/b: spec.mmImag: unknown field; did you mean mmImage?",
		"spec.count=2":                      "--set spec.count: server/b: spec.count: not supported yet",
		"server/zz:spec.cpu=2":              "--set server/zz:spec.cpu: no server/zz in this apply",
		"volume/zz:spec.size=2":             "--set volume/zz:spec.size: no volume/zz in this apply",
		"pod/zz:spec.size=2":                `"pod" is not a kind`,
		"cpu=2":                             "not of the form [KIND/NAME:]spec.FIELD=VALUE",
		"spec.cpu":                          "--set spec.cpu: not of the form",
		"spec.=2":                           "not of the form [KIND/NAME:]spec.FIELD=VALUE",
		"spec.a..b=2":                       "not a field's path",
		"spec.cpu.x=2":                      "spec.cpu: must be a whole number, but is a mapping",
		"server/b:spec.storage[0].x=2":      "the manifest has no spec.storage[0]",
		"server/a:spec.osVariant.x=2":       "spec.osVariant is text in the manifest, not a mapping",
		"spec.networkInterface=host-bridge": "--set spec.networkInterface: server/b: spec.networkInterface: must be a list",
		"spec.ansible={":                    "spec.ansible: its text is not YAML",
		"server/b:metadata.name=Bad_Name":   "--set server/b:metadata.name: server/b: metadata.name: \"Bad_Name\" is not a valid name",
	} {
		t.Run(flag, func(t *testing.T) {
			_, problems := loadText(t, twoServers, Options{Set: []string{flag}})
			require.NotEmpty(t, problems)
			require.Contains(t, problems[len(problems)-1].String(), want)
			require.Zero(t, problems[len(problems)-1].Line)
		})
	}
}
