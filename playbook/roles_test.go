package playbook

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// root is this machine's file system with a layer of its own over it: what is installed
// there is gone with the test. It has no running init system, so services are enabled and
// not started.
type root struct {
	t    *testing.T
	dir  string
	vars string // extra variables: what the mirror has
}

func newRoot(t *testing.T) *root {
	t.Helper()
	over := t.TempDir()
	mount := func(source, target, kind string, flags uintptr, data string) {
		require.NoError(t, os.MkdirAll(target, 0o755))
		require.NoError(t, unix.Mount(source, target, kind, flags, data), target)
		t.Cleanup(func() { require.NoError(t, unix.Unmount(target, unix.MNT_DETACH)) })
	}
	mount("roles", over, "tmpfs", 0, "")
	r := &root{t: t, dir: filepath.Join(over, "root")}
	upper, work := filepath.Join(over, "upper"), filepath.Join(over, "work")
	require.NoError(t, os.MkdirAll(upper, 0o755))
	require.NoError(t, os.MkdirAll(work, 0o755))
	mount("roles", r.dir, "overlay", 0, "lowerdir=/,upperdir="+upper+",workdir="+work)
	for _, shared := range []string{"/proc", "/dev", "/sys"} {
		mount(shared, r.dir+shared, "", unix.MS_BIND|unix.MS_REC, "")
	}
	require.NoError(t, os.CopyFS(r.dir+"/playbook", os.DirFS(".")))
	resolver, err := os.ReadFile("/etc/resolv.conf")
	require.NoError(t, err)
	require.NoError(t, os.RemoveAll(r.dir+"/etc/resolv.conf"))
	require.NoError(t, os.WriteFile(r.dir+"/etc/resolv.conf", resolver, 0o644))
	r.run("apt-get", "-qq", "update") // a machine may have no lists, and a check fetches none
	r.fillMirror()
	return r
}

// fillMirror makes a site's own copy of what roles download. The programs in it do
// nothing: none of them is started here.
func (r *root) fillMirror() {
	release := "node_exporter-1.9.1.linux-" + runtime.GOARCH
	sh(r.t, "mkdir -p "+r.dir+"/mirror/v1.9.1/"+release+" "+r.dir+"/mirror/v1.36.4+k3s1")
	sh(r.t, "cp /bin/true "+r.dir+"/mirror/v1.9.1/"+release+"/node_exporter; cp /bin/true "+r.dir+"/mirror/v1.36.4+k3s1/k3s")
	archive := r.dir + "/mirror/v1.9.1/" + release + ".tar.gz"
	sh(r.t, "tar -C "+filepath.Dir(archive)+" -czf "+archive+" "+release)
	vars, err := json.Marshal(map[string]any{
		"node_exporter_sha256": map[string]string{runtime.GOARCH: digest(r.t, archive)},
		"k3s_sha256":           map[string]string{runtime.GOARCH: digest(r.t, r.dir+"/mirror/v1.36.4+k3s1/k3s")},
	})
	require.NoError(r.t, err)
	r.vars = string(vars)
}

func digest(t *testing.T, file string) string {
	t.Helper()
	content, err := os.ReadFile(file)
	require.NoError(t, err)
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// run runs a program in the root.
func (r *root) run(name string, args ...string) string {
	r.t.Helper()
	cmd := exec.CommandContext(r.t.Context(), "chroot", append([]string{r.dir, name}, args...)...)
	cmd.Env = append(os.Environ(), "SYSTEMD_OFFLINE=1", "ANSIBLE_NOCOLOR=1", "LC_ALL=C.UTF-8", "HOME=/root", "ANSIBLE_CONFIG=/playbook/ansible.cfg")
	out, err := cmd.CombinedOutput()
	require.NoError(r.t, err, "%s: %s", name, out)
	return string(out)
}

// play runs playbooks over the fleet and gives what was printed.
func (r *root) play(args ...string) string {
	r.t.Helper()
	for i, arg := range args {
		if strings.HasSuffix(arg, ".yaml") {
			args[i] = "/playbook/" + arg
		}
	}
	return r.run("ansible-playbook", append([]string{"-i", "/playbook/testdata/fleet.yaml", "-e", r.vars}, args...)...)
}

func (r *root) file(path string) string {
	r.t.Helper()
	text, err := os.ReadFile(r.dir + path)
	require.NoError(r.t, err)
	return string(text)
}

var changes = regexp.MustCompile(`changed=(\d+)`)

// changed gives how many tasks of the whole run changed something.
func changed(t *testing.T, out string) string {
	t.Helper()
	recaps := changes.FindAllStringSubmatch(out, -1)
	require.NotEmpty(t, recaps, out)
	return recaps[len(recaps)-1][1] // it counts on from playbook to playbook
}

func TestRolesAreCheckedAppliedAndThenChangeNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("installs packages, into a layer over this machine's files")
	}
	r := newRoot(t)
	out := r.play("--check", "--diff", "base.yaml", "nginx.yaml", "haproxy.yaml", "node-exporter.yaml", "docker.yaml", "k3s.yaml")
	require.NotEqual(t, "0", changed(t, out), out)
	require.NoFileExists(t, r.dir+"/etc/sudoers.d/burrow-ada", "a check changes nothing")

	out = r.play("base.yaml", "nginx.yaml", "haproxy.yaml", "node-exporter.yaml")
	require.NotEqual(t, "0", changed(t, out), out)
	out = r.play("--diff", "base.yaml", "nginx.yaml", "haproxy.yaml", "node-exporter.yaml")
	require.Equal(t, "0", changed(t, out), out)

	require.Contains(t, r.run("id", "ada"), "(adm)")
	require.Contains(t, r.file("/home/ada/.ssh/authorized_keys"), "\nssh-ed25519 AAAA ada\n")
	require.Contains(t, r.file("/etc/sudoers.d/burrow-ada"), "ada ALL=")
	zone, err := os.Readlink(r.dir + "/etc/localtime")
	require.NoError(t, err)
	require.Equal(t, "/usr/share/zoneinfo/Europe/Vienna", zone)
	require.Contains(t, r.file("/etc/systemd/timesyncd.conf.d/burrow.conf"), "NTP=ntp.example.org")
	require.Contains(t, r.file("/etc/hosts"), "127.0.1.1 balancer")
	r.run("nginx", "-t")
	r.run("haproxy", "-c", "-f", "/etc/haproxy/haproxy.cfg")
	balancer := r.file("/etc/haproxy/haproxy.cfg")
	require.Contains(t, balancer, "server web1 192.0.2.11:80")
	require.Contains(t, balancer, "server web2 2001:db8::12:80")
	r.run("systemd-analyze", "verify", "/etc/systemd/system/node_exporter.service")
	for _, service := range []string{"systemd-timesyncd", "nginx", "haproxy", "node_exporter"} {
		require.Equal(t, "enabled\n", r.run("systemctl", "is-enabled", service), service)
	}
}
