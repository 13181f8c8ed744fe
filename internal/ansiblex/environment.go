package ansiblex

import (
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// choice is a setting that the user's ansible.cfg may make differently.
type choice struct {
	variable, value string
	keys            []string // under which the user would have set it
}

// choices are burrow's defaults. Each line says why it differs from Ansible's.
var choices = []choice{
	// One SSH round trip a task instead of three.
	{"ANSIBLE_PIPELINING", "True", []string{"connection.pipelining", "ssh_connection.pipelining", "defaults.pipelining"}},
	// A guest that is emulated, or boots, answers slowly.
	{"ANSIBLE_TIMEOUT", "60", []string{"defaults.timeout"}},
	{"ANSIBLE_SSH_RETRIES", "3", []string{"ssh_connection.retries", "connection.retries"}},
	{"ANSIBLE_FORKS", "10", []string{"defaults.forks"}},
	// Facts are gathered once a run, not once a play.
	{"ANSIBLE_GATHERING", "smart", []string{"defaults.gathering"}},
	// An inventory with a mistake in it is an error, not a warning and an empty group.
	{"ANSIBLE_INVENTORY_ANY_UNPARSED_IS_FAILED", "True", []string{"inventory.any_unparsed_is_failed"}},
}

// base is what every process of a run sees: nothing of the worker's own.
func (f *Folder) base(cfgPath string) map[string]string {
	env := map[string]string{
		"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8",
		"SHELL": "/bin/sh", // ssh starts ProxyCommand with it
		"HOME":  f.Path("work", "home"), "USER": f.user.Name, "LOGNAME": f.user.Name, "TMPDIR": f.Path("work", "tmp"),
		"TERM": "dumb", markVariable: f.ID,

		"ANSIBLE_CONFIG":         f.Path("etc", "ansible.cfg"), // empty; else /etc/ansible and home would be looked at
		"ANSIBLE_HOME":           f.Path("work", "home", ".ansible"),
		"ANSIBLE_LOCAL_TEMP":     f.Path("work", "tmp"),
		"ANSIBLE_NOCOLOR":        "1",
		"ANSIBLE_FORCE_COLOR":    "0",
		"ANSIBLE_NOCOWS":         "1",
		"ANSIBLE_ASK_VAULT_PASS": "False",
	}
	if cfgPath != "" {
		env["ANSIBLE_CONFIG"] = cfgPath
	}
	return env
}

// environment is that of ansible-playbook; installed is where roles and collections are that
// its requirements name, or "".
func (f *Folder) environment(cfgPath string, cfg configuration, installed string) []string {
	env := f.base(cfgPath)
	maps.Copy(env, map[string]string{
		"BURROW_EVENTS_FD":        strconv.Itoa(eventsFD),
		"ANSIBLE_ASK_PASS":        "False",
		"ANSIBLE_BECOME_ASK_PASS": "False",
		// Our connection variables: where they are found, and that host keys are checked.
		"ANSIBLE_HOST_KEY_CHECKING":  "True",
		"ANSIBLE_PLAYBOOK_VARS_ROOT": "top",
		// Never shared between runs: names of hosts repeat (pitfall 68).
		"ANSIBLE_SSH_CONTROL_PATH_DIR":        f.Path("work", "cp"),
		"ANSIBLE_PERSISTENT_CONTROL_PATH_DIR": f.Path("work", "cp"),
		"ANSIBLE_CACHE_PLUGIN":                "jsonfile",
		"ANSIBLE_CACHE_PLUGIN_CONNECTION":     f.Path("work", "facts"),
		"ANSIBLE_RETRY_FILES_ENABLED":         "False",
	})
	cfgDir := filepath.Dir(cfgPath)
	for _, c := range choices {
		if !cfg.has(c.keys...) {
			env[c.variable] = c.value
		}
	}
	// Lists of the user's keep what is theirs and get what we need.
	plugins := append([]string{f.Path("etc", "plugins")}, cfg.paths(cfgDir, "defaults.callback_plugins")...)
	env["ANSIBLE_CALLBACK_PLUGINS"] = strings.Join(append(plugins, "/usr/share/ansible/plugins/callback"), ":")
	withOurs(env, "ANSIBLE_VARS_ENABLED", cfg.list("defaults.vars_plugins_enabled"), "host_group_vars")
	withOurs(env, "ANSIBLE_INVENTORY_ENABLED", cfg.list("inventory.enable_plugins"), "yaml")
	if installed != "" {
		env["ANSIBLE_ROLES_PATH"] = search(cfg.paths(cfgDir, "defaults.roles_path"), filepath.Join(installed, rolesDir),
			"/usr/share/ansible/roles", "/etc/ansible/roles")
		env["ANSIBLE_COLLECTIONS_PATH"] = search(cfg.collections(cfgDir), filepath.Join(installed, collectionsDir), "/usr/share/ansible/collections")
	}
	return pairs(env)
}

// search is a path of folders: what the user's configuration names, what is installed for the
// run, and, as without either, those of the machine.
func search(theirs []string, installed string, machine ...string) string {
	if len(theirs) > 0 {
		machine = nil
	}
	return strings.Join(slices.Concat(theirs, []string{installed}, machine), ":")
}

// withOurs sets a list only when the user has one: Ansible's default has what we need.
func withOurs(env map[string]string, variable string, theirs []string, ours string) {
	if len(theirs) == 0 {
		return
	}
	if !slices.Contains(theirs, ours) && !slices.Contains(theirs, "ansible.builtin."+ours) {
		theirs = append(theirs, ours)
	}
	env[variable] = strings.Join(theirs, ",")
}

func pairs(env map[string]string) []string {
	out := make([]string, 0, len(env))
	for k, v := range env {
		out = append(out, k+"="+v)
	}
	slices.Sort(out)
	return out
}
