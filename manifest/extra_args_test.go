package manifest

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestExtraArgsThatUndoWhatBurrowDecidesAreRefusedByName(t *testing.T) {
	for args, want := range map[string]string{
		"-i, hosts.ini":                          "-i has a field of its own; write it in inventory",
		"-ihosts.ini":                            "-i has a field of its own",
		"-vi, hosts.ini":                         "-i has a field of its own",
		"--inventory=x":                          "--inventory has a field of its own",
		"--limit, all":                           "--limit the run is for the servers",
		"--lim=all":                              "write options in full: --limit",
		"-e, ansible_host=192.0.2.1":             "-e has a field of its own; write it in extraVars",
		"-e@/etc/shadow":                         "-e has a field of its own",
		"--extra-vars, '@/etc/shadow'":           "--extra-vars has a field of its own",
		"--vault-password-file=/etc/burrow/key":  "write it in vaultPassword",
		"--private-key, /root/.ssh/id":           "--private-key how a server is reached",
		"--ask-pass":                             "--ask-pass would ask, and nobody is there",
		"-k":                                     "-k would ask",
		"-K":                                     "write it in becomePassword",
		"--connection=local":                     "how a server is reached",
		"-c, local":                              "how a server is reached",
		"--ssh-common-args=-o ProxyCommand=evil": "how a server is reached",
		"--check":                                "would run nothing",
		"--list-hosts":                           "would run nothing",
		"-vvvh":                                  "-h would run nothing",
		"other.yaml":                             "would be one more playbook",
		"--forks 5":                              "is more than one argument",
		"--":                                     "would make what follows playbooks",
		"--forks":                                "--forks needs a value",
		"-f":                                     "-f needs a value",
		"--diff=yes":                             "--diff takes no value",
		"--fork=5":                               "write options in full: --forks",
		"--nosuch":                               "is no option of ansible-playbook that burrow knows",
		"-Z":                                     "is no option of ansible-playbook",
	} {
		t.Run(args, func(t *testing.T) {
			_, problems := loadText(t, serverText("ansible: {playbook: p.yaml, extra-args: ["+quoted(args)+"]}\n"), Options{WorkDir: folder(t, "p.yaml", "- hosts: all\n")})
			require.Len(t, problems, 1)
			require.Contains(t, problems[0].Path, "spec.ansible.extra-args")
			require.Contains(t, problems[0].String(), want)
		})
	}
}

func TestOtherExtraArgsAreTaken(t *testing.T) {
	for _, args := range []string{"-vvvv", "--diff", "--forks=5", "--forks, 5", "-f5", "-f, 5", "-Dvf, 5, -b", "--start-at-task, Install it", "--become-user=-x"} {
		_, problems := loadText(t, serverText("ansible: {playbook: p.yaml, extra-args: ["+quoted(args)+"]}\n"), Options{WorkDir: folder(t, "p.yaml", "- hosts: all\n")})
		require.Empty(t, problems, args)
	}
}

// quoted makes YAML text of a list that is separated by comma and blank.
func quoted(list string) string {
	items := strings.Split(list, ", ")
	for i, item := range items {
		items[i] = `"` + strings.Trim(item, "'") + `"`
	}
	return strings.Join(items, ", ")
}
