package build

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Mirrors is where a release's packages come from, now and later in the guest.
type Mirrors struct {
	Suite    string
	Archive  []string // base URLs of the main archive
	Security []string // base URLs of the security archive
	Keyring  string   // path of the archive's keys, on the host and in the image
}

// Debian's own addresses, used when the host's configuration names none.
const (
	defaultArchive  = "http://deb.debian.org/debian"
	defaultSecurity = "http://deb.debian.org/debian-security"
	debianKeyring   = "/usr/share/keyrings/debian-archive-keyring.gpg"
)

// HostMirrors takes the mirrors from the apt configuration below etc (normally "/etc"),
// so that a site's own mirror is used; the host's release need not be d's. A host that
// is not Debian, or names no mirror, gives Debian's own.
func HostMirrors(d Distro, etc string) Mirrors {
	m := Mirrors{Suite: d.Suite, Keyring: debianKeyring}
	host := hostSuite(etc)
	if host != "" {
		for _, s := range aptSources(filepath.Join(etc, "apt")) {
			m.add(s, host)
		}
	}
	if len(m.Archive) == 0 {
		m.Archive = []string{defaultArchive}
	}
	if len(m.Security) == 0 {
		m.Security = []string{defaultSecurity}
	}
	return m
}

func (m *Mirrors) add(s aptSource, hostSuite string) {
	switch {
	case !slices.Contains(s.components, "main") || !strings.HasPrefix(s.uri, "http"):
	case s.suite == hostSuite && !slices.Contains(m.Archive, s.uri):
		m.Archive = append(m.Archive, s.uri)
	case (s.suite == hostSuite+"-security" || s.suite == hostSuite+"/updates") && !slices.Contains(m.Security, s.uri):
		m.Security = append(m.Security, s.uri)
	}
}

// sourcesList is the release's apt configuration, one line an archive.
func (m Mirrors) sourcesList() string {
	var b strings.Builder
	line := func(uri, suite string) {
		fmt.Fprintf(&b, "deb [signed-by=%s] %s %s main\n", m.Keyring, uri, suite)
	}
	for _, u := range m.Archive {
		line(u, m.Suite)
		line(u, m.Suite+"-updates")
	}
	for _, u := range m.Security {
		line(u, m.Suite+"-security")
	}
	return b.String()
}

// deb822 is the same for the guest, in the format that Debian's own installer writes.
func (m Mirrors) deb822() string {
	stanza := func(uris []string, suites ...string) string {
		return fmt.Sprintf("Types: deb\nURIs: %s\nSuites: %s\nComponents: main\nSigned-By: %s\n",
			strings.Join(uris, " "), strings.Join(suites, " "), m.Keyring)
	}
	return stanza(m.Archive, m.Suite, m.Suite+"-updates") + "\n" + stanza(m.Security, m.Suite+"-security")
}

// hostSuite is the host's Debian code name; "" when it is another distribution.
func hostSuite(etc string) string {
	b, err := os.ReadFile(filepath.Join(etc, "os-release"))
	if err != nil {
		return ""
	}
	values := map[string]string{}
	for line := range strings.Lines(string(b)) {
		k, v, _ := strings.Cut(strings.TrimSpace(line), "=")
		values[k] = strings.Trim(v, `"'`)
	}
	if values["ID"] != "debian" {
		return ""
	}
	return values["VERSION_CODENAME"]
}

// aptSource is one archive of an apt configuration.
type aptSource struct {
	uri, suite string
	components []string
}

// aptSources reads sources.list and sources.list.d in both of apt's formats. Files that
// cannot be read, and lines that make no sense, are left out: apt is their judge.
func aptSources(dir string) []aptSource {
	files, _ := filepath.Glob(filepath.Join(dir, "sources.list.d", "*"))
	files = append([]string{filepath.Join(dir, "sources.list")}, files...)
	var all []aptSource
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			continue
		}
		switch filepath.Ext(f) {
		case ".list":
			all = append(all, oneLineSources(string(b))...)
		case ".sources":
			all = append(all, deb822Sources(string(b))...)
		}
	}
	return all
}

// oneLineSources reads `deb [options] uri suite component…` lines.
func oneLineSources(text string) []aptSource {
	var all []aptSource
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "#")
		rest, ok := strings.CutPrefix(strings.TrimSpace(line), "deb ")
		if !ok {
			continue
		}
		rest = strings.TrimSpace(rest)
		if strings.HasPrefix(rest, "[") {
			_, rest, _ = strings.Cut(rest, "]")
		}
		if f := strings.Fields(rest); len(f) >= 3 {
			all = append(all, aptSource{uri: strings.TrimRight(f[0], "/"), suite: f[1], components: f[2:]})
		}
	}
	return all
}

// deb822Sources reads stanzas of `Types:`, `URIs:`, `Suites:`, `Components:`.
func deb822Sources(text string) []aptSource {
	var all []aptSource
	fields, last := map[string]string{}, ""
	flush := func() {
		if slices.Contains(strings.Fields(fields["types"]), "deb") && !strings.EqualFold(strings.TrimSpace(fields["enabled"]), "no") {
			for _, uri := range strings.Fields(fields["uris"]) {
				for _, suite := range strings.Fields(fields["suites"]) {
					all = append(all, aptSource{strings.TrimRight(uri, "/"), suite, strings.Fields(fields["components"])})
				}
			}
		}
		fields, last = map[string]string{}, ""
	}
	s := bufio.NewScanner(strings.NewReader(text))
	for s.Scan() {
		line := s.Text()
		switch {
		case strings.TrimSpace(line) == "":
			flush()
		case strings.HasPrefix(line, "#"):
		case line[0] == ' ' || line[0] == '\t':
			fields[last] += " " + line
		default:
			k, v, _ := strings.Cut(line, ":")
			last = strings.ToLower(k)
			fields[last] = v
		}
	}
	flush()
	return all
}
