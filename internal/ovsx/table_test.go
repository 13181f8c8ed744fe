package ovsx

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTablesOfOvsVsctlAreRead(t *testing.T) {
	out := `{"data":[["a",["set",[]],["set",[10,20]],["map",[["k","v"],["x","1"]]],7,["uuid","c0ffee"]]],"headings":["name","tag","trunks","external_ids","ofport","_uuid"]}` +
		"\n" + `{"data":[],"headings":["name"]}` + "\n"
	tables, err := parseTables([]byte(out))
	require.NoError(t, err)
	require.Len(t, tables, 2)
	require.Empty(t, tables[1])
	r := tables[0][0]
	require.Equal(t, "a", r.text("name"))
	require.Zero(t, r.number("tag"))
	require.Empty(t, r.text("tag"))
	require.Equal(t, []int{10, 20}, r.numbers("trunks"))
	require.Equal(t, map[string]string{"k": "v", "x": "1"}, r.mapping("external_ids"))
	require.Equal(t, 7, r.number("ofport"))
	require.Equal(t, "c0ffee", r.text("_uuid"))
	require.Empty(t, r.text("absent"))
	require.Empty(t, r.mapping("name"))
}

func FuzzTables(f *testing.F) {
	f.Add([]byte(`{"data":[["a",["set",[1]]]],"headings":["name","tag"]}`))
	f.Add([]byte(`{"data":[[["map",[["k"]]]]],"headings":["m"]}`))
	f.Add([]byte("br-a\n{}"))
	f.Fuzz(func(t *testing.T, out []byte) {
		tables, err := parseTables(out)
		if err != nil {
			return
		}
		for _, rows := range tables {
			for _, r := range rows {
				for column := range r {
					r.text(column)
					r.number(column)
					r.numbers(column)
					r.mapping(column)
				}
			}
		}
	})
}
