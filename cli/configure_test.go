package cli

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"

	"burrow.dev/burrow/cli/follow"
	"burrow.dev/burrow/manifest"
	"burrow.dev/burrow/workflows"
)

func TestACheckThatWouldChangeSomethingEndsWithThree(t *testing.T) {
	ended := func(changed int, check bool) error {
		result, err := json.Marshal(workflows.ConfigureServerOut{
			Check: check, RunID: "run-1", Recap: map[string]manifest.Recap{"db": {OK: 3, Changed: changed}},
		})
		require.NoError(t, err)
		return verdict([]follow.Outcome{{
			Target: follow.Target{ID: "server/db"}, Kind: workflows.NameConfigureServer,
			Status: enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED, Result: result,
		}})
	}
	require.NoError(t, ended(0, true))
	require.NoError(t, ended(2, false), "what a run has changed is success")
	var out bytes.Buffer
	require.Equal(t, ExitDiffers, report(&out, ended(2, true)))
	require.Equal(t, "server/db: tasks that would change something: 2. See them: burrow logs db --run run-1\n", out.String())
}

func TestAllServersThatACheckWouldChangeAreNamed(t *testing.T) {
	outcome := func(name string, changed int) follow.Outcome {
		result, err := json.Marshal(workflows.ConfigureServerOut{Check: true, RunID: "run-" + name, Recap: map[string]manifest.Recap{name: {Changed: changed}}})
		require.NoError(t, err)
		return follow.Outcome{
			Target: follow.Target{ID: "server/" + name}, Kind: workflows.NameConfigureServer,
			Status: enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED, Result: result,
		}
	}
	failed := follow.Outcome{
		Target: follow.Target{ID: "server/bad"}, Kind: workflows.NameConfigureServer,
		Status: enumspb.WORKFLOW_EXECUTION_STATUS_FAILED, Message: "server/bad: run playbook: no",
	}
	checked := "server/a: tasks that would change something: 1. See them: burrow logs a --run run-a\n" +
		"server/c: tasks that would change something: 4. See them: burrow logs c --run run-c\n"
	var out bytes.Buffer
	require.Equal(t, ExitDiffers, report(&out, verdict([]follow.Outcome{outcome("a", 1), outcome("b", 0), outcome("c", 4)})))
	require.Equal(t, checked, out.String())
	out.Reset()
	require.Equal(t, ExitFailed, report(&out, verdict([]follow.Outcome{outcome("a", 1), failed, outcome("c", 4)})))
	require.Equal(t, checked+"error: server/bad: run playbook: no\n", out.String())
}

func TestVariablesAreAMappingOfBoundedSize(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	vars, err := varsOf(file("ok.yaml", "a: 1\nb: {c: [x]}\n"))
	require.NoError(t, err)
	require.Equal(t, "x", vars["b"].(map[string]any)["c"].([]any)[0])
	for name, text := range map[string]string{"list": "- a\n", "broken": "a: [\n", "large": "a: " + string(make([]byte, maxVarsBytes)), "binary": "\x00\xff"} {
		_, err := varsOf(file(name, text))
		require.ErrorContains(t, err, "variables file "+filepath.Join(dir, name)+": read: ", name)
	}
	for name, text := range map[string]string{
		"passwd": "root:x:0:0:hunter2:/root:/bin/bash\nother:x:1:1::/:/bin/sh\n", "tabs": "a: hunter2\n\tb: [hunter2\n",
		"key": "-----BEGIN\nhunter2: hunter2: hunter2\n", "list": "- hunter2\n", "no name": "a: [{b: 'secret:hunter2/x'}]\n",
	} {
		_, err = varsOf(file(name, text))
		require.Error(t, err, name)
		require.NotContains(t, err.Error(), "hunter2", "the wrong file may hold secrets")
	}
	_, err = varsOf(filepath.Join(dir, "missing"))
	require.ErrorIs(t, err, os.ErrNotExist)
}
