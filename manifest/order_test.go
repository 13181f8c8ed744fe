package manifest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func levelsOf(t *testing.T, set *Set) [][]string {
	t.Helper()
	levels, err := Order(set.Documents)
	require.NoError(t, err)
	var out [][]string
	for _, level := range levels {
		var refs []string
		for _, i := range level {
			refs = append(refs, set.Documents[i].Ref())
		}
		out = append(out, refs)
	}
	return out
}

func TestDocumentsComeAfterWhatTheyNeed(t *testing.T) {
	set, problems := loadText(t, documents(
		"apiVersion: v1\nkind: Server\nmetadata: {name: late}\nspec: {dependsOn: [srv/db]}",
		"apiVersion: v1\nkind: Server\nmetadata: {name: db}\nspec: {mmImage: own, networkInterface: [{networkname: n}], storage: [{metadata: {name: d}}]}",
		networkText("n", "mode: nat"),
		volumeText("d", "size: 1"),
		"apiVersion: v1\nkind: Image\nmetadata: {name: own}\nspec: {sourceUrl: https://x.test/i}",
	), Options{})
	require.NoError(t, problems.Err())
	require.Equal(t, [][]string{{"network/n", "volume/d", "image/own"}, {"server/db"}, {"server/late"}}, levelsOf(t, set))
}

func TestServersThatWaitForEachOtherAreRefused(t *testing.T) {
	set, problems := loadText(t, documents(
		serverText("dependsOn: [server/b]"),
		"apiVersion: v1\nkind: Server\nmetadata: {name: b}\nspec: {dependsOn: [server/c]}",
		"apiVersion: v1\nkind: Server\nmetadata: {name: c}\nspec: {dependsOn: [server/a]}",
	), Options{})
	require.Len(t, problems, 1)
	require.Equal(t, "-:5:3: server/a: spec.dependsOn: goes round in a circle: server/a needs server/b needs server/c needs server/a; remove one of these dependencies", problems[0].String())
	_, err := Order(set.Documents)
	require.ErrorIs(t, err, ErrCycle)
}

func TestAServerThatWaitsForItselfIsRefused(t *testing.T) {
	_, problems := loadText(t, serverText("dependsOn: [server/a]"), Options{})
	require.Len(t, problems, 1)
	require.Contains(t, problems[0].Message, "server/a needs server/a")
}

func TestALongChainIsOrderedWithoutRecursion(t *testing.T) {
	var texts []string
	for i := range 900 {
		texts = append(texts, fmt.Sprintf("apiVersion: v1\nkind: Server\nmetadata: {name: s%d}\nspec: {dependsOn: [server/s%d]}", i, (i+1)%901))
	}
	texts = append(texts, "apiVersion: v1\nkind: Server\nmetadata: {name: s900}")
	set, problems := loadText(t, strings.Join(texts, "\n---\n"), Options{})
	require.NoError(t, problems.Err())
	levels, err := Order(set.Documents)
	require.NoError(t, err)
	require.Len(t, levels, 901)
}
