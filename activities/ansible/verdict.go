package ansible

import (
	"errors"
	"fmt"
	"sort"
	"strings"

	"burrow.dev/burrow/internal/ansiblex"
	"burrow.dev/burrow/internal/errs"
)

// maxFailures bounds how many hosts an error names.
const maxFailures = 3

// maxNames bounds how many hosts, and how many groups, of an inventory an error names.
const maxNames = 12

// verdict turns an outcome into what the operation does: nil, a person, or another try.
// After the server is built nothing about a playbook is Permanent: it can be mended and
// run again without building the server anew.
func verdict(in RunIn, out ansiblex.Outcome, retries int) error {
	const action = "run playbook"
	next := nextStep(in.Owner)
	switch out.Result {
	case ansiblex.OK:
		return nil
	case ansiblex.Unreachable:
		return errs.NewTransient(in.Owner, action, errs.Reason("unreachable: %s", listed(out.Failures)))
	case ansiblex.Killed:
		return errs.NewTransient(in.Owner, action, errs.Reason("ansible-playbook was killed (out of memory?)"))
	case ansiblex.Failed:
		after := ""
		if retries > 0 {
			after = fmt.Sprintf(" (after %d retries)", retries)
		}
		return errs.NewOperator(in.Owner, action, errs.Reason("%s%s", listed(out.Failures), after), next)
	case ansiblex.NoHosts:
		return errs.NewOperator(in.Owner, action, noHosts(in, out),
			"name the server or one of its groups in hosts:; then "+next)
	case ansiblex.Prompted:
		return errs.NewOperator(in.Owner, action, errs.Reason("it asks for a value (vars_prompt %s), and nobody is there to answer", out.Message),
			fmt.Sprintf("set spec.ansible.extraVars.%s, or give it a default; then %s", out.Message, next))
	}
	return errs.NewOperator(in.Owner, action, errs.Reason("Ansible refuses it: %s", out.Message), next)
}

func nextStep(owner string) string {
	name := owner[strings.LastIndex(owner, "/")+1:]
	return fmt.Sprintf("see burrow logs %s; then burrow retry %s, with -f and the playbook when you have edited it", name, owner)
}

func listed(failures []ansiblex.Failure) string {
	var parts []string
	for _, f := range failures[:min(maxFailures, len(failures))] {
		parts = append(parts, strings.TrimSuffix(fmt.Sprintf("task %q on %s: %s", f.Task, f.Host, f.Message), ": "))
	}
	if more := len(failures) - maxFailures; more > 0 {
		parts = append(parts, fmt.Sprintf("and on %d more hosts", more))
	}
	return strings.Join(parts, "; ")
}

func noHosts(in RunIn, out ansiblex.Outcome) error {
	var names []string
	for _, h := range in.Hosts {
		names = append(names, h.Server.Name)
	}
	sort.Strings(names)
	if out.Message == "" {
		return errs.Reason("it ran nothing on %s", strings.Join(names, ", "))
	}
	return errs.Reason("it matched no host; inventory has %s, in groups %s (plays: %s; the run is for %s)",
		firstOf(out.Hosts), firstOf(out.Groups), out.Message, strings.Join(names, ", "))
}

// firstOf names the first of an inventory's hosts or groups.
func firstOf(names []string) string {
	if len(names) > maxNames {
		return strings.Join(names[:maxNames], ", ") + ", …"
	}
	return strings.Join(names, ", ")
}

// logged is what a run's log says about an error: its cause, since the log is the object's.
func logged(err error) error {
	var e *errs.Error
	if errors.As(err, &e) && e.Err != nil {
		return e.Err
	}
	return err
}
