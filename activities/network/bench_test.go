package network_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"burrow.dev/burrow/activities/network"
)

// BenchmarkEnsure ensures a NAT network that stands.
func BenchmarkEnsure(b *testing.B) {
	s := newSite(b)
	g := s.newGuest(b, "db", s.network(b, "db-net", nil, ""), nil)
	s.provision(b, g)
	for b.Loop() {
		_, err := s.Ensure(b.Context(), network.EnsureIn{Server: g.server, Ports: g.ports})
		require.NoError(b, err)
	}
}

// BenchmarkWire wires a port that is on its bridge.
func BenchmarkWire(b *testing.B) {
	s := newSite(b)
	g := s.newGuest(b, "db", s.network(b, "db-net", isolated, ""), nil)
	s.provision(b, g)
	for b.Loop() {
		_, err := s.Wire(b.Context(), network.WireIn{Server: g.server, Ports: g.ports})
		require.NoError(b, err)
	}
}

// BenchmarkFirstServer makes a NAT network with its first server, and takes both away.
func BenchmarkFirstServer(b *testing.B) {
	s := newSite(b)
	g := s.newGuest(b, "db", s.network(b, "db-net", nil, ""), nil)
	for b.Loop() {
		s.provision(b, g)
		_, err := s.Unwire(b.Context(), network.UnwireIn{Server: g.server, Ports: g.ports})
		require.NoError(b, err)
		_, err = s.Release(b.Context(), network.ReleaseIn{Server: g.server, Ports: g.ports})
		require.NoError(b, err)
	}
}
