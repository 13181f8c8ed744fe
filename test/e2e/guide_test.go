package e2e

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	sdkpb "go.temporal.io/api/sdk/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"golang.org/x/crypto/ssh"

	"burrow.dev/burrow/workflows"
)

// TestTheGuidesManifestBuildsUnchangedAndSurvivesWhatComes takes the manifest of the guide
// as users have it through its whole life: built with nothing changed but its image and
// its key URL, while every burrow process is killed again and again; logged in to without
// a question; back by itself after a power cut; and gone without a trace.
func TestTheGuidesManifestBuildsUnchangedAndSurvivesWhatComes(t *testing.T) {
	if testing.Short() {
		t.Skip("boots a guest")
	}
	keyURL, ca := keyServer(t)
	s := newStack(t, "--keys-ca", ca, "--keys-allow-private")
	s.image("local-debian")
	dir := guide(t)
	s.run("apply", "-f", filepath.Join(dir, "net-and-volume.yaml"))
	before := s.census()

	started := time.Now()
	s.run("--config", s.data+"/client.json", "apply", "--set", "spec.mmImage=local-debian", "-f", filepath.Join(dir, "db.yaml"),
		"--detach", "--set", "spec.auth.url="+keyURL)
	for _, step := range []string{"build volumes", "define and start", "run playbook"} {
		s.reached("server/db", step)
		t.Logf("%s after %s: killing everything", step, time.Since(started).Round(time.Second))
		s.kill9()
		s.start()
		require.Empty(t, s.survivors(), "nothing of the old Ansible run is left when burrow is up again")
	}
	rec := s.running("db")
	t.Logf("Running after %s", time.Since(started).Round(time.Second))

	t.Run("the networks are there in the manifest's order", func(t *testing.T) {
		require.Len(t, rec.Status.Ports, 2)
		require.Equal(t, "host-bridge", rec.Status.Ports[0].Network)
		require.Equal(t, "db-net", rec.Status.Ports[1].Network)
	})
	t.Run("the data volume is vdb and has a stable name", func(t *testing.T) {
		require.Equal(t, "vdb", rec.Status.Disks[1].Target)
		out := s.run("ssh", "db", "--", "readlink", "-f", "/dev/disk/by-id/virtio-"+rec.Status.Disks[1].Serial)
		require.Contains(t, out, "/dev/vdb")
	})
	t.Run("ssh logs in the first time, with strict checking and no question", func(t *testing.T) {
		cmd := s.command(t.Context(), "ssh", "db", "--", "hostname; ip -br addr; cat ~/.ssh/authorized_keys")
		cmd.Stdin = nil
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		require.Contains(t, string(out), "db\n")
		require.Contains(t, string(out), "172.16.90.")
		require.Contains(t, string(out), "someone@example.test", "the keys of the URL are installed")
	})
	t.Run("the playbook ran from the user's folder", func(t *testing.T) {
		require.NotNil(t, rec.Status.Playbook)
		require.True(t, rec.Status.Playbook.OK)
		require.Contains(t, s.run("logs", "server", "db"), "table bomdb")
	})
	t.Run("the history has a readable summary for each step", func(t *testing.T) { s.readHistory(t) })
	t.Run("a second apply has nothing to do", func(t *testing.T) {
		out := s.run("apply", "-f", filepath.Join(dir, "db.yaml"), "--set", "spec.mmImage=local-debian", "--set", "spec.auth.url="+keyURL)
		require.Contains(t, out, "server/db is as declared")
	})
	t.Run("after a power cut it runs again, wired, without anyone", func(t *testing.T) {
		s.powerCut()
		s.start()
		s.eventually("ssh after the power cut", func() error {
			out, err := s.try(t.Context(), "ssh", "db", "--", "hostname")
			if err != nil {
				return fmt.Errorf("%w: %s", err, out)
			}
			return nil
		})
	})
	s.run("-o", "json", "delete", "server", "db", "-y")
	s.eventually("nothing of the server left", func() error {
		if left := difference(s.census(), before); len(left) > 0 {
			return fmt.Errorf("left behind:\n%s", strings.Join(left, "\n"))
		}
		return nil
	})
	require.Empty(t, difference(before, s.census()), "nothing that was there before is gone")
}

// guide copies the case files into a folder of this test.
func guide(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(dir, os.DirFS("testdata/guide")))
	return dir
}

// reached waits until an operation has started a step.
func (s *stack) reached(id, step string) {
	s.t.Helper()
	s.eventually(step, func() error {
		c := s.temporal()
		events := c.GetWorkflowHistory(s.t.Context(), id, "", false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
		for events.HasNext() {
			e, err := events.Next()
			if err != nil {
				return err
			}
			var summary string
			_ = converter.GetDefaultDataConverter().FromPayload(e.GetUserMetadata().GetSummary(), &summary)
			if strings.HasPrefix(summary, step) {
				return nil
			}
		}
		return fmt.Errorf("%s has not started it", id)
	})
}

// survivors are processes of an Ansible run.
func (s *stack) survivors() []int {
	return s.ours(func(c string) bool {
		return strings.Contains(c, "ansible-playbook") && !strings.Contains(c, "--syntax-check")
	})
}

// readHistory reads the run back from Temporal.
func (s *stack) readHistory(t *testing.T) {
	c := s.temporal()
	summaries := map[string]bool{}
	events := c.GetWorkflowHistory(t.Context(), "server/db", "", false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		e, err := events.Next()
		require.NoError(t, err)
		if e.GetEventType() != enumspb.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED {
			continue
		}
		var summary string
		require.NoError(t, converter.GetDefaultDataConverter().FromPayload(e.GetUserMetadata().GetSummary(), &summary))
		name, _, _ := strings.Cut(summary, ": ")
		summaries[name] = true
	}
	for _, step := range workflows.StepNames(workflows.NameProvisionServer) {
		require.True(t, summaries[step], "a summary for %q in %v", step, summaries)
	}
	d, err := c.DescribeWorkflow(t.Context(), "server/db", "")
	require.NoError(t, err)
	require.Equal(t, enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED, d.Status)
	details := currentDetails(t, c)
	for _, step := range workflows.StepNames(workflows.NameProvisionServer) {
		require.Contains(t, details, "| "+step+" | ")
	}
}

// currentDetails asks for the Markdown that the Web UI shows.
func currentDetails(t *testing.T, c client.Client) string {
	t.Helper()
	v, err := c.QueryWorkflow(t.Context(), "server/db", "", "__temporal_workflow_metadata")
	require.NoError(t, err)
	var meta sdkpb.WorkflowMetadata
	require.NoError(t, v.Get(&meta))
	return meta.GetCurrentDetails()
}

// powerCut ends everything that runs, guests and the hypervisor's daemons too, as a cut
// of the power would, and starts the daemons again.
func (s *stack) powerCut() {
	s.t.Helper()
	s.kill9()
	for _, name := range []string{"qemu-system-x86_64", "libvirtd", "virtlogd", "ovs-vswitchd", "ovsdb-server", "dnsmasq"} {
		for _, pid := range s.ours(func(c string) bool {
			program, _, _ := strings.Cut(c, " ")
			return strings.HasPrefix(filepath.Base(program), name)
		}) {
			_ = exec.Command("kill", "-9", strconv.Itoa(pid)).Run()
		}
	}
	// A power cut empties /run and takes links and namespaces with it.
	out, err := exec.Command("sh", "-c", `for n in $(ip netns list | cut -d" " -f1); do ip netns delete "$n"; done; nft flush ruleset; rm -rf /run/burrow /run/libvirt/qemu/*`).CombinedOutput()
	require.NoError(s.t, err, "%s", out)
	out, err = exec.Command("../../scripts/host-services.sh", filepath.Join(s.t.TempDir(), "started")).CombinedOutput()
	require.NoError(s.t, err, "%s", out)
}

// keyServer serves login keys over https with an authority of its own, inside the lab.
func keyServer(t *testing.T) (url, caFile string) {
	t.Helper()
	pub, _, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	key, err := ssh.NewPublicKey(pub)
	require.NoError(t, err)
	line := strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key))) + " someone@example.test\n"
	srv := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, line) }))
	t.Cleanup(srv.Close)
	caFile = filepath.Join(t.TempDir(), "ca.pem")
	require.NoError(t, os.WriteFile(caFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw}), 0o600))
	return srv.URL + "/someone.keys", caFile
}
