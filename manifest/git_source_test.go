package manifest

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// bothWith gives a Playbook and a server whose playbook has these fields.
func bothWith(fields string) []string {
	return []string{playbookText(fields), serverText("ansible:\n" + indent("playbook: site.yaml\n"+fields))}
}

func TestAPlaybookMayComeFromARepository(t *testing.T) {
	for _, url := range []string{"https://h.test/a/b.git", "ssh://git@h.test:2222/a", "git@h.test:a/b.git", "git@h.test:/srv/a", "file:///srv/a"} {
		for _, text := range bothWith("source: {url: '" + url + "', ref: release/1.4}\ninventory: ./hosts/all.yaml\n") {
			set, problems := loadText(t, text, Options{})
			require.NotRegexp(t, "source|playbook:|inventory", problems.Error())
			a, _ := set.Documents[0].Ansible()
			require.Equal(t, &GitSource{URL: url, Ref: "release/1.4"}, a.Source)
			require.Equal(t, "hosts/all.yaml", a.Inventory)
		}
	}
}

func TestARepositoryThatIsNoneIsRefusedAndALoginInItNotShown(t *testing.T) {
	for fields, says := range map[string]string{
		"source: {url: 'https://u:hunter2@h.test/a'}":        "has a login in it",
		"source: {url: 'https://hunter2@h.test/a'}":          "has a login in it",
		"source: {url: 'ssh://git:hunter2@h.test/a'}":        "has a login in it",
		"source: {url: 'https://h.test/a?token=hunter2'}":    "has a part after ? or #",
		"source: {url: 'http://u:hunter2@h.test/a'}":         "is not https, ssh or file",
		"source: {url: 'ext::sh -c hunter2'}":                "has characters that a URL cannot have",
		"source: {url: 'ext::hunter2'}":                      "is not the URL of a git repository",
		"source: {url: '--upload-pack=hunter2'}":             "is not https, ssh or file",
		"source: {url: 'ssh://-ohunter2/a'}":                 "names no host",
		"source: {url: 'ssh://%2dhunter2@h.test/a'}":         "names no host",
		"source: {url: [https://u:hunter2@h.test/a]}":        "must be text",
		"source: 'https://u:hunter2@h.test/a'":               "must be a mapping",
		"source: {ref: main}":                                "source.url",
		"source: {url: 'https://h.test/a', commit: abc}":     "commit",
		"source: {url: 'https://h.test/a', ref: --x}":        "is no branch, tag or commit",
		"source: {url: 'https://h.test/a', ref: '+a:b'}":     "is no branch, tag or commit",
		"source: {url: 'file:///a'}\ninventory: ../x.yaml":   "is not inside the repository",
		"source: {url: 'file:///a'}\ninventory: /etc/passwd": "is not inside the repository",
	} {
		for _, text := range bothWith(fields + "\n") {
			_, problems := loadText(t, text, Options{})
			require.ErrorContains(t, problems.Err(), says, fields)
			require.NotContains(t, problems.Error(), "hunter2", fields)
			for _, p := range problems {
				require.NotContains(t, p.Text(), "hunter2", fields)
			}
		}
	}
}

// Whatever is accepted is no option, no helper and no login, however git reads it.
func FuzzGitProtocol(f *testing.F) {
	for _, url := range []string{"https://h.test/a", "git@h:a", "ssh://git@h/a", "file:///a", "ext::sh", "-o", "ssh://-o/a", "https://u:p@h/a"} {
		f.Add(url)
	}
	f.Fuzz(func(t *testing.T, url string) {
		protocol, err := GitProtocol(url)
		if err != nil {
			return
		}
		require.Contains(t, []string{"https", "ssh", "file"}, protocol)
		require.NotEqual(t, byte('-'), url[0])
		before, _, found := strings.Cut(url, "::")
		require.False(t, found && !strings.ContainsAny(before, "/:"), "git takes it for a helper")
		if protocol == "https" {
			host, _, _ := strings.Cut(strings.TrimPrefix(url, "https://"), "/")
			require.NotContains(t, host, "@")
		}
	})
}
