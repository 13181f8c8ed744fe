package playbook

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// disk is a loop device over a file of its own.
type disk struct {
	t              *testing.T
	device, target string
}

func newDisk(t *testing.T) *disk {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "disk.img")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	require.NoError(t, os.Truncate(file, 64<<20))
	device := strings.TrimSpace(sh(t, "losetup --find --show "+file))
	d := &disk{t: t, device: device, target: filepath.Join(dir, "data")}
	// A table of mounts of its own; the machine's stays as it is.
	fstab := filepath.Join(dir, "fstab")
	require.NoError(t, os.WriteFile(fstab, nil, 0o644))
	require.NoError(t, unix.Mount(fstab, "/etc/fstab", "", unix.MS_BIND, ""))
	t.Cleanup(func() {
		_ = unix.Unmount(d.target, 0)
		require.NoError(t, unix.Unmount("/etc/fstab", 0))
		sh(t, "losetup --detach "+device)
	})
	return d
}

func sh(t *testing.T, command string) string {
	t.Helper()
	out, err := exec.Command("/bin/sh", "-c", command).CombinedOutput()
	require.NoError(t, err, "%s: %s", command, out)
	return string(out)
}

// prepare runs the role's tasks for the volume against this host.
func (d *disk) prepare() (string, error) {
	play := filepath.Join(d.t.TempDir(), "play.yaml")
	require.NoError(d.t, os.WriteFile(play, []byte(`- hosts: localhost
  connection: local
  gather_facts: false
  tasks:
    - ansible.builtin.include_role: {name: mysql, tasks_from: volume.yml}
`), 0o600))
	cmd := exec.Command("ansible-playbook", "-i", "localhost,", play, "-e", "mysql_volume=none", "-e", "mysql_device="+d.device, "-e", "mysql_datadir="+d.target)
	roles, err := filepath.Abs("roles")
	require.NoError(d.t, err)
	cmd.Env = append(os.Environ(), "ANSIBLE_ROLES_PATH="+roles, "ANSIBLE_NOCOLOR=1", "ANSIBLE_HOME="+d.t.TempDir())
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err = cmd.Run()
	return out.String(), err
}

func TestABlankVolumeIsFormattedAndMountedOnce(t *testing.T) {
	d := newDisk(t)
	out, err := d.prepare()
	require.NoError(t, err, out)
	require.Contains(t, out, "changed=1")
	require.Equal(t, d.device, strings.TrimSpace(sh(t, "findmnt -no SOURCE "+d.target)))
	require.Contains(t, sh(t, "cat /etc/fstab"), "UUID=")
	require.Empty(t, sh(t, "ls -A "+d.target))

	sh(t, "echo precious > "+d.target+"/file")
	out, err = d.prepare()
	require.NoError(t, err, out)
	require.Contains(t, out, "changed=0")

	// As after a reboot, or on a rebuilt server: mounted again, with what is on it.
	require.NoError(t, unix.Unmount(d.target, 0))
	out, err = d.prepare()
	require.NoError(t, err, out)
	require.Equal(t, "precious\n", sh(t, "cat "+d.target+"/file"))
	require.Equal(t, "1\n", sh(t, "wc -l < /etc/fstab"))
}

func TestADiskWithSomethingOnItIsNeverFormatted(t *testing.T) {
	cases := map[string]string{
		"a partition table":        "printf 'label: gpt\n,8M\n' | sfdisk --no-reread --quiet DEVICE",
		"a swap area":              "mkswap -q DEVICE",
		"bytes that nobody knows":  "printf secret | dd of=DEVICE bs=1 seek=70000 conv=notrunc status=none",
		"a volume group's label":   "printf 'LABELONE\\001\\000\\000\\000\\000\\000\\000\\000' | dd of=DEVICE bs=512 seek=1 conv=notrunc status=none",
		"a filesystem of no use":   "mkfs.vfat DEVICE >/dev/null 2>&1 || mkswap -q DEVICE",
		"an encrypted volume":      "printf 'LUKS\\272\\276\\000\\001' | dd of=DEVICE conv=notrunc status=none",
		"two signatures at a time": "mkswap -q DEVICE; printf 'LABELONE' | dd of=DEVICE bs=512 seek=1 conv=notrunc status=none",
	}
	for name, make := range cases {
		t.Run(name, func(t *testing.T) {
			d := newDisk(t)
			sh(t, strings.ReplaceAll(make, "DEVICE", d.device))
			before := sh(t, "sha256sum < "+d.device)
			out, err := d.prepare()
			require.Error(t, err, out)
			require.Contains(t, out, d.device)
			require.Equal(t, before, sh(t, "sha256sum < "+d.device))
			require.Empty(t, sh(t, "cat /etc/fstab"))
		})
	}
}

func TestFilesUnderTheMountPointAreNotHidden(t *testing.T) {
	d := newDisk(t)
	require.NoError(t, os.MkdirAll(d.target, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(d.target, "ibdata1"), nil, 0o600))
	out, err := d.prepare()
	require.Error(t, err)
	require.Contains(t, out, "move them away first")
}
