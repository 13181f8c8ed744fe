package guest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"sort"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"

	"burrow.dev/burrow/activities"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/internal/plaintext"
)

const (
	// pollEvery is how often the guest is asked whether cloud-init has finished: a test
	// for a file, on a connection that stands.
	pollEvery = time.Second
	// answerTimeout bounds one question; `cloud-init status` itself takes several seconds
	// in an emulated guest.
	answerTimeout = 60 * time.Second
	// maxReport bounds what is kept of cloud-init's own words.
	maxReport = 2000
	// exitNotFound is the shell's exit status for a command that does not exist.
	exitNotFound = 127
)

// settled asks cheaply whether `cloud-init status` has something final to say; starting
// Python every second would slow down the boot that is waited for.
const settled = `test -e /run/cloud-init/result.json || test -e /run/cloud-init/disabled || ! command -v cloud-init >/dev/null 2>&1`

// report is what `cloud-init status --format json` prints. Older versions lack the last three.
type report struct {
	Status            string              `json:"status"`
	Detail            string              `json:"detail"`
	Errors            []string            `json:"errors"`
	ExtendedStatus    string              `json:"extended_status"`
	RecoverableErrors map[string][]string `json:"recoverable_errors"`
}

// awaitCloudInit waits on a login until cloud-init has finished, as `cloud-init status
// --wait` does, but never blocks: the connection may go away under a reboot.
func awaitCloudInit(ctx context.Context, server activities.Server, conn net.Conn, client *ssh.Client, p *progress) (warning string, err error) {
	ticker := time.NewTicker(pollEvery)
	defer ticker.Stop()
	for {
		if err := conn.SetDeadline(time.Now().Add(answerTimeout)); err != nil {
			return "", err
		}
		done, warning, err := askCloudInit(server, client)
		if err != nil || done {
			if err != nil {
				p.failed(stageCloudInit, err)
			}
			return warning, err
		}
		select {
		case <-ctx.Done():
			return "", ctx.Err()
		case <-ticker.C:
		}
	}
}

// askCloudInit asks once. An error of class final is cloud-init's own failure; any other
// is the connection's.
func askCloudInit(server activities.Server, client *ssh.Client) (done bool, warning string, err error) {
	var exit *ssh.ExitError
	if _, err := command(client, settled); errors.As(err, &exit) {
		return false, "", nil
	} else if err != nil {
		return false, "", err
	}
	text, err := command(client, "cloud-init status --format json")
	code := 0
	if errors.As(err, &exit) {
		code = exit.ExitStatus()
	} else if err != nil {
		return false, "", err
	}
	done, warning, err = judge(text, code)
	if err != nil {
		err = &finalError{errs.NewOperator(server.Ref(), "wait for cloud-init", err, fmt.Sprintf(
			"see /var/log/cloud-init-output.log there (burrow ssh %s), then burrow retry %s", server.Name, server.Ref()))}
	}
	return done, warning, err
}

// judge reads cloud-init's answer and exit status: 0 is done, 1 failed, 2 degraded
// (finished, with errors it could live with).
func judge(text string, code int) (done bool, warning string, err error) {
	if code == exitNotFound {
		return true, "cloud-init is not installed in the guest", nil
	}
	var r report
	if json.Unmarshal([]byte(text), &r) != nil {
		if code == 0 || code == 2 {
			return true, "cloud-init's answer cannot be read", nil
		}
		return false, "", fmt.Errorf("cloud-init status ends with %d: %s", code, orElse(plaintext.Text(text, maxReport), "no output"))
	}
	switch {
	case r.Status == "running" || r.Status == "not run" || r.Status == "not started":
		return false, "", nil
	case r.Status == "error" || code == 1:
		return false, "", fmt.Errorf("cloud-init failed: %s", orElse(r.words(), "it gives no reason"))
	case r.Status == "disabled":
		return true, "cloud-init is disabled in the guest", nil
	case code == 2 || strings.Contains(r.ExtendedStatus, "degraded"):
		return true, plaintext.Text("cloud-init finished degraded: "+orElse(r.words(), "it gives no reason"), maxReport), nil
	}
	return true, "", nil
}

// words are cloud-init's own, cleaned and bounded.
func (r report) words() string {
	said := append([]string(nil), r.Errors...)
	levels := make([]string, 0, len(r.RecoverableErrors))
	for level := range r.RecoverableErrors {
		levels = append(levels, level)
	}
	sort.Strings(levels)
	for _, level := range levels {
		for _, e := range r.RecoverableErrors[level] {
			said = append(said, level+": "+e)
		}
	}
	if len(said) == 0 && r.Detail != "" {
		said = []string{r.Detail}
	}
	return plaintext.Text(strings.Join(said, "\n"), maxReport)
}

func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}
