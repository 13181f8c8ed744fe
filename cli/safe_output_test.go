package cli

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode"

	"github.com/goccy/go-yaml"
	"github.com/stretchr/testify/require"

	"burrow.dev/burrow/internal/gateway"
	"burrow.dev/burrow/manifest"
)

// hostile are what a terminal obeys instead of showing it: CSI in one byte, a change of
// direction, ESC.
const hostile = "a\u009b31mb\u202ec\x1b[2Jd"

func TestNoOutputFormatLetsATerminalBeCommanded(t *testing.T) {
	w := newWorld(t)
	w.put("db", manifest.PhaseRunning)
	rec := w.records["server/db"]
	rec.Metadata.Comment, rec.Metadata.Labels, rec.Status.Message = hostile, map[string]string{"l": hostile}, hostile
	w.records["server/db"] = rec
	w.start()
	comments := 0
	for _, args := range [][]string{
		{"get", "servers", "-o", "json"},
		{"get", "servers", "-o", "yaml"},
		{"get", "server", "db", "-o", "json"},
		{"get", "servers", "-o", "name"},
		{"describe", "server/db"},
		{"describe", "server/db", "-o", "json"},
		{"describe", "server/db", "-o", "yaml"},
		{"get", "servers", "-o", "wide"},
	} {
		var out, errOut bytes.Buffer
		require.Equal(t, ExitOK, w.burrow(t.Context(), nil, &out, &errOut, args...), errOut.String())
		safe(t, out.String())
		var doc any
		switch args[len(args)-1] {
		case "json":
			require.NoError(t, json.Unmarshal(out.Bytes(), &doc))
		case "yaml":
			require.NoError(t, yaml.Unmarshal(out.Bytes(), &doc))
		default:
			continue
		}
		encoded, err := json.Marshal(doc)
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(encoded, &doc))
		quoted, err := json.Marshal(hostile)
		require.NoError(t, err)
		comments += strings.Count(string(encoded), string(quoted))
	}
	require.GreaterOrEqual(t, comments, 10, "nothing of the text is lost in a document")
}

func TestAddressesInAnyFormatDoNotCommandATerminal(t *testing.T) {
	for _, format := range []string{"json", "yaml"} {
		var out bytes.Buffer
		p := documentPrinter(format, &out, "net")
		require.NoError(t, p.totals([]gateway.SubnetUsage{{Subnet: "10.0.0.0/24", Size: "254", Used: "1", Free: "253", Reserved: "0", Quarantined: "0"}}))
		for range 2 {
			require.NoError(t, p.address(gateway.Address{First: "10.0.0.2", Last: "10.0.0.2", Owner: hostile, Comment: hostile}))
		}
		require.NoError(t, p.end())
		safe(t, out.String())
		var doc struct {
			Addresses []addressItem `json:"addresses" yaml:"addresses"`
		}
		require.NoError(t, yaml.Unmarshal(out.Bytes(), &doc), out.String())
		require.Len(t, doc.Addresses, 2)
		require.Equal(t, hostile, doc.Addresses[1].Comment)
	}
}

func safe(t *testing.T, text string) {
	t.Helper()
	for _, r := range text {
		require.True(t, r == '\n' || unicode.IsGraphic(r), "%U in %q", r, text)
	}
}
