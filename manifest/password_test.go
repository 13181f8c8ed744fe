package manifest

import (
	"encoding/json"
	"testing"

	"github.com/go-crypt/crypt/algorithm/shacrypt"
	"github.com/stretchr/testify/require"
)

func TestClearRootPasswordIsHashedWithAWarningAndNeverShown(t *testing.T) {
	set, problems := loadText(t, serverText("auth:\n  rootPassword: correct horse\n"), Options{})
	require.NoError(t, problems.Err())
	require.Len(t, set.Warnings, 1)
	require.NotContains(t, set.Warnings.Error(), "horse")
	require.Contains(t, set.Warnings[0].String(), "-:6:19: server/a: spec.auth.rootPassword: is in clear text; its hash is used")
	hash := set.Documents[0].Server.Auth.RootPassword
	require.Regexp(t, cryptPattern, hash)
	digest, err := shacrypt.Decode(hash)
	require.NoError(t, err)
	require.True(t, digest.Match("correct horse"))
}

func TestAKnownServerKeepsItsHashOfTheSamePassword(t *testing.T) {
	text := serverText("auth: {rootPassword: correct horse}")
	first, problems := loadText(t, text, Options{})
	require.NoError(t, problems.Err())
	spec, err := first.Documents[0].SpecJSON()
	require.NoError(t, err)
	known := NewSnapshot([]Record{{Kind: KindServer, Metadata: RecordMeta{Metadata: Metadata{Name: "a"}}, Spec: spec}}, nil, true)

	again, problems := loadText(t, text, Options{Known: known})
	require.NoError(t, problems.Err())
	require.Equal(t, first.Documents[0].Server.Auth.RootPassword, again.Documents[0].Server.Auth.RootPassword)

	changed, problems := loadText(t, serverText("auth: {rootPassword: battery staple}"), Options{Known: known})
	require.NoError(t, problems.Err())
	require.NotEqual(t, first.Documents[0].Server.Auth.RootPassword, changed.Documents[0].Server.Auth.RootPassword)
}

func TestHashesAndSecretNamesOfRootPasswordsAreKept(t *testing.T) {
	for _, text := range []string{
		"$6$saltsalt$qFmFH.bQmmtXzyBY0s9v7Oicd2z4XSIecDzlB5KiA2/jctKu9YterLp8wwnSq.qc.eoxqOmSuNp2xS0ktL3nh/",
		"secret:db.root-password_1",
		"$y$j9T$F5Jx5fExrKuPp53xLKQ..1$X3DX6M94c7o.9agCG9G317fhZg9SqC.5i5rd.RhAtQ7",
	} {
		quoted, err := json.Marshal(text)
		require.NoError(t, err)
		set, problems := loadText(t, serverText("auth: {rootPassword: "+string(quoted)+"}"), Options{})
		require.NoError(t, problems.Err())
		require.Empty(t, set.Warnings)
		require.Equal(t, text, set.Documents[0].Server.Auth.RootPassword)
	}
}

func TestPasswordsDoNotShowInExcerptsOfOtherProblems(t *testing.T) {
	for _, text := range []string{
		serverText("auth: {rootPassword: hunter2, bad: x}"),
		serverText("auth: {rootPassword: [hunter2]}"),
		serverText("auth: {rootPassword: \"$9$hunter2hunter2\"}"),
		serverText("auth: {rootPassword: 'secret:hunter2 x'}"),
		serverText("auth: {rootPassword: 'secret:hunter2/x'}"),
		serverText("auth: {rootPassword: \"hunter2\\thunter2\"}"),
		serverText("auth: {rootPassword: hunter2, rootPassword: hunter2}"),
		serverText("auth: {rootPassword: hunter2"),
		serverText("auth: {\"rootPassword\": \"hunter2\", publicKey: nothing like a key}"),
	} {
		set, problems := loadText(t, text, Options{})
		require.NotEmpty(t, problems, text)
		require.NotContains(t, problems.Error()+set.Warnings.Error(), "hunter2", text)
	}
	_, problems := loadText(t, serverText("cpu: 1"), Options{Set: []string{"spec.auth.rootPassword=[hunter2]", "spec.auth.rootPasword=hunter2"}})
	require.NotContains(t, problems.Error(), "hunter2")
}
