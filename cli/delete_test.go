package cli

import (
	"testing"

	"github.com/stretchr/testify/require"

	"burrow.dev/burrow/manifest"
)

func TestServersAreDeletedBeforeWhatTheyUse(t *testing.T) {
	server := func(name string) Ref { return Ref{Kind: manifest.KindServer, Name: name} }
	volume, network := Ref{Kind: manifest.KindVolume, Name: "data"}, Ref{Kind: manifest.KindNetwork, Name: "db-net"}
	require.Equal(t, [][]Ref{{server("a"), server("b")}, {volume, network}},
		deleteStages([]Ref{volume, server("a"), network, server("b")}))
}
