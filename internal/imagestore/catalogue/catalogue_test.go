package catalogue_test

import (
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"burrow.dev/burrow/internal/imagestore/catalogue"
)

func TestEveryEntryIsCompleteAndVerifiable(t *testing.T) {
	seen := map[string]bool{}
	for _, name := range catalogue.Names() {
		require.False(t, seen[name], "%s is there twice", name)
		seen[name] = true
	}
	for _, e := range catalogue.Entries() {
		for _, field := range []string{e.Name, e.User, e.OSName, e.OSVersion} {
			require.NotEmpty(t, field, e.Name)
		}
		for _, address := range []string{e.URL, e.ChecksumURL} {
			u, err := url.Parse(address)
			require.NoError(t, err)
			require.Equal(t, "https", u.Scheme, "%s: %s", e.Name, address)
		}
	}
}

func TestTheNamesUsersKnowAreThere(t *testing.T) {
	for _, name := range []string{"ubuntu22.04", "ubuntu24.04", "debian12", "debian13", "rocky9", "fedora"} {
		_, ok := catalogue.Find(name)
		require.True(t, ok, name)
	}
	_, ok := catalogue.Find("windows95")
	require.False(t, ok)
}
