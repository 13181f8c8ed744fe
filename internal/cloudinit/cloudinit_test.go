package cloudinit_test

import (
	"bytes"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/kdomanski/iso9660"
	"github.com/stretchr/testify/require"

	"burrow.dev/burrow/internal/cloudinit"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/manifest"
)

var update = flag.Bool("update", false, "write the golden files")

func example() cloudinit.Config {
	return cloudinit.Config{
		InstanceID: "0b6c2a34-7d8e-4f00-9a11-2b3c4d5e6f70-0", Hostname: "db",
		Users:      []cloudinit.User{{Name: "debian", Keys: []string{"ssh-ed25519 AAAA1 alice@example", "ssh-ed25519 AAAA2 burrow"}, ImageDefault: true}},
		HostKeyPEM: "-----BEGIN OPENSSH PRIVATE KEY-----\nbm90IGEga2V5\n-----END OPENSSH PRIVATE KEY-----\n", HostKeyLine: "ssh-ed25519 AAAAhost",
		Ports: []manifest.Port{
			{Index: 0, MAC: "52:54:00:10:20:30", Addresses: []string{"172.16.90.2/24", "fd00::2/64"}, Gateways: []string{"172.16.90.1", "fd00::1"}, Nameservers: []string{"172.16.90.1"}, Search: []string{"db-net"}, MTU: 1500},
			{Index: 1, MAC: "52:54:00:10:20:31", DHCP4: true, MTU: 1400, Routes: []manifest.Route{{To: "10.0.0.0/8", Via: "172.16.91.254"}}},
		},
	}
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(path, got, 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), string(got))
}

func TestSeedFilesAreTheGoldenOnes(t *testing.T) {
	trunk := example()
	trunk.Ports = []manifest.Port{
		{Index: 0, MAC: "52:54:00:10:20:30", Addresses: []string{"10.0.0.2/24"}, Gateways: []string{"10.9.0.1"}, MTU: 1500, VLANs: []int{10, 20, 30}, NativeVLAN: 20},
		{Index: 1, MAC: "52:54:00:10:20:31", Addresses: []string{"10.1.0.2/24"}, MTU: 1500, VLANs: []int{40, 50}},
		{Index: 2, MAC: "52:54:00:10:20:32", MTU: 1500, VLANs: []int{60}},
	}
	users := example()
	users.Users = []cloudinit.User{{Name: "alice", Keys: []string{"ssh-ed25519 AAAA1"}}, {Name: "bob", Keys: []string{"ssh-ed25519 AAAA1"}}}
	users.RootPassword = "$6$salt$hash"
	users.UserData = "#cloud-config\npackages: [htop]\nhostname: mine\n"
	users.NetworkConfig = "ethernets:\n  eth0:\n    mtu: 9000\n  eth7:\n    dhcp4: true\n"
	for name, c := range map[string]cloudinit.Config{"plain": example(), "trunk": trunk, "users": users} {
		t.Run(name, func(t *testing.T) {
			seed, err := cloudinit.Render(c)
			require.NoError(t, err)
			golden(t, name+".meta-data", seed.MetaData)
			golden(t, name+".user-data", seed.UserData)
			golden(t, name+".network-config", seed.NetworkConfig)
		})
	}
}

func TestEveryStringIsReadBackAsThatString(t *testing.T) {
	for _, nasty := range []string{"on", "yes", "1e3", "0x10", "012", "null", "~", "52:54:00:10:20:30", "a: b", "#x", `q"u\o`, "ä 漢", "tab\there"} {
		c := example()
		c.Hostname = nasty
		seed, err := cloudinit.Render(c)
		require.NoError(t, err)
		var meta map[string]any
		require.NoError(t, yaml.Unmarshal(seed.MetaData, &meta))
		require.Equal(t, nasty, meta["local-hostname"])
		require.Contains(t, string(seed.MetaData), `local-hostname: "`, "quoted for readers of YAML 1.1")
	}
}

func TestTheISOHasTheLabelAndTheFiles(t *testing.T) {
	seed, err := cloudinit.Render(example())
	require.NoError(t, err)
	var b bytes.Buffer
	require.NoError(t, seed.WriteISO(&b))
	image, err := iso9660.OpenImage(bytes.NewReader(b.Bytes()))
	require.NoError(t, err)
	label, err := image.Label()
	require.NoError(t, err)
	require.Equal(t, cloudinit.VolumeLabel, strings.TrimSpace(label))
	root, err := image.RootDir()
	require.NoError(t, err)
	files, err := root.GetChildren()
	require.NoError(t, err)
	got := map[string]string{}
	for _, f := range files {
		text, err := io.ReadAll(f.Reader())
		require.NoError(t, err)
		got[f.Name()] = string(text)
	}
	require.Equal(t, map[string]string{
		"meta-data": string(seed.MetaData), "user-data": string(seed.UserData), "network-config": string(seed.NetworkConfig),
	}, got)
}

func TestTheDigestFollowsTheContentOnly(t *testing.T) {
	a, err := cloudinit.Render(example())
	require.NoError(t, err)
	b, err := cloudinit.Render(example())
	require.NoError(t, err)
	require.Equal(t, a.Digest(), b.Digest())
	c := example()
	c.Ports[0].MTU = 1499
	d, err := cloudinit.Render(c)
	require.NoError(t, err)
	require.NotEqual(t, a.Digest(), d.Digest())
}

func TestUserDataOfEachKindIsTakenAndOtherTextRefused(t *testing.T) {
	for text, want := range map[string]string{
		"#!/bin/sh\necho hi\n":                  "text/x-shellscript",
		"#cloud-config\r\npackages: []\r\n":     "text/cloud-config",
		"#include\nhttps://example.org/x\n":     "text/x-include-url",
		"## template: jinja\n#cloud-config\n{}": "text/jinja2",
		"#cloud-boothook\n#!/bin/sh\n":          "text/cloud-boothook",
		"#part-handler\n":                       "text/part-handler",
		"Content-Type: multipart/mixed; boundary=\"x\"\nMIME-Version: 1.0\n\n--x\nContent-Type: text/x-shellscript\n\n#!/bin/sh\n--x--\n": "multipart/mixed; boundary=\"x\"",
	} {
		c := example()
		c.UserData = text
		seed, err := cloudinit.Render(c)
		require.NoError(t, err, text)
		require.Contains(t, string(seed.UserData), "Content-Type: "+want)
		require.Contains(t, string(seed.UserData), "Merge-Type: ")
	}
	for _, text := range []string{"echo hi", "<html>", "#cloud-config\n- a list\n", "#cloud-config\nsecret: [hunter2\n"} {
		c := example()
		c.UserData = text
		_, err := cloudinit.Render(c)
		require.ErrorIs(t, err, errs.ErrInvalid, text)
		require.Equal(t, errs.Permanent, errs.ClassOf(err))
		require.NotContains(t, err.Error(), "hunter2")
	}
}

func TestANetworkConfigOfVersionOneStandsAlone(t *testing.T) {
	c := example()
	c.NetworkConfig = "network:\n  version: 1\n  config: []\n"
	seed, err := cloudinit.Render(c)
	require.NoError(t, err)
	require.NotContains(t, string(seed.NetworkConfig), "ethernets")
	c.NetworkConfig = "{"
	_, err = cloudinit.Render(c)
	require.ErrorIs(t, err, errs.ErrInvalid)
}

func FuzzUserTextNeverPanicsAndNeverLosesOurPart(f *testing.F) {
	f.Add("#cloud-config\na: b\n", "version: 2\n")
	f.Add("Content-Type: multipart/mixed\n\n", "network: {version: 1}")
	f.Fuzz(func(t *testing.T, user, network string) {
		c := example()
		c.UserData, c.NetworkConfig = user, network
		seed, err := cloudinit.Render(c)
		if err == nil {
			require.Contains(t, string(seed.UserData), "ed25519_private")
		}
	})
}
