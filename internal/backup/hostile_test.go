package backup

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"burrow.dev/burrow/internal/errs"
)

// asAny says that err is one of the targets.
func asAny(err error, targets ...any) bool {
	for _, target := range targets {
		if errors.As(err, target) {
			return true
		}
	}
	return false
}

func mountSmall(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := unix.Mount("small", dir, "tmpfs", 0, "size=256k"); err != nil {
		t.Skip("mounting: ", err)
	}
	t.Cleanup(func() { require.NoError(t, unix.Unmount(dir, 0)) })
	return dir
}

// piece is one entry of a file that is made by hand.
type piece struct {
	name    string
	content string
	kind    byte
}

func pieces(t *testing.T, file []byte) []piece {
	t.Helper()
	zst, err := zstd.NewReader(bytes.NewReader(file))
	require.NoError(t, err)
	defer zst.Close()
	var all []piece
	for r := tar.NewReader(zst); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		require.NoError(t, err)
		content, err := io.ReadAll(r)
		require.NoError(t, err)
		all = append(all, piece{h.Name, string(content), tar.TypeReg})
	}
}

// assemble makes a file of pieces with sums that fit, whatever is in it.
func assemble(t *testing.T, all []piece) []byte {
	t.Helper()
	var file bytes.Buffer
	w, err := newWriter(&file, fixedTime)
	require.NoError(t, err)
	var end End
	for _, p := range all {
		switch {
		case p.name == endName:
			require.NoError(t, json.Unmarshal([]byte(p.content), &end))
		case p.name == sumsName:
		case p.kind != tar.TypeReg:
			require.NoError(t, w.tar.WriteHeader(&tar.Header{Name: p.name, Typeflag: p.kind, Linkname: p.content}))
		default:
			require.NoError(t, w.entry(p.name, int64(len(p.content)), strings.NewReader(p.content)))
		}
	}
	require.NoError(t, w.end(end))
	return file.Bytes()
}

func TestAFileThatIsCutOffAnywhereIsRefused(t *testing.T) {
	i := newInstallation(t)
	i.server("db")
	file, _ := i.backup(&History{Database: strings.NewReader("sqlite"), DatabaseSize: 6, Schema: []byte("{}")})
	good, err := Verify(t.Context(), bytes.NewReader(file))
	require.NoError(t, err)
	for n := 0; n < len(file); n += 3 {
		_, err := Verify(t.Context(), bytes.NewReader(file[:n]))
		require.ErrorIs(t, err, errs.ErrInvalid, "%d of %d bytes", n, len(file))
	}
	for n := 0; n < len(file); n += 7 {
		bad := bytes.Clone(file)
		bad[n] ^= 0x10
		got, err := Verify(t.Context(), bytes.NewReader(bad))
		if err == nil { // a bit that says how to decompress, and changes nothing of the content
			require.Equal(t, good, got, "byte %d", n)
			continue
		}
		require.ErrorIs(t, err, errs.ErrInvalid, "byte %d", n)
	}
}

func TestHostileFilesAreRefusedBeforeAnythingIsWritten(t *testing.T) {
	i := newInstallation(t)
	i.server("db")
	file, _ := i.backup(&History{Database: strings.NewReader("sqlite"), DatabaseSize: 6, Schema: []byte("{}")})
	good := pieces(t, file)
	_, err := Verify(t.Context(), bytes.NewReader(assemble(t, good)))
	require.NoError(t, err)

	line := func(key string, revision int64, value string) string {
		text, err := json.Marshal(Line{Key: key, Revision: revision, Value: []byte(value)})
		require.NoError(t, err)
		return string(text) + "\n"
	}
	page := func(content string) func([]piece) []piece {
		return func(p []piece) []piece {
			for n := range p {
				if strings.HasPrefix(p[n].name, recordFolder) {
					p[n].content = content
				}
			}
			return p
		}
	}
	insert := func(before string, add piece) func([]piece) []piece {
		return func(p []piece) []piece {
			for n := range p {
				if strings.HasPrefix(p[n].name, before) {
					return append(append(append([]piece{}, p[:n]...), add), p[n:]...)
				}
			}
			return p
		}
	}
	drop := func(prefix string) func([]piece) []piece {
		return func(p []piece) []piece {
			for n := range p {
				if strings.HasPrefix(p[n].name, prefix) {
					return append(append([]piece{}, p[:n]...), p[n+1:]...)
				}
			}
			return p
		}
	}
	for name, change := range map[string]func([]piece) []piece{
		"path that leads out":          insert(recordFolder, piece{"blobs/../../../etc/cron.d/x", "* * * * *", tar.TypeReg}),
		"absolute path":                insert(recordFolder, piece{"/etc/passwd", "x", tar.TypeReg}),
		"blob with a path in its name": insert(recordFolder, piece{"blobs/logs//x", "x", tar.TypeReg}),
		"temporary blob":               insert(recordFolder, piece{"blobs/logs/x.tmp", "x", tar.TypeReg}),
		"symlink":                      insert(recordFolder, piece{"blobs/logs/x", "/etc", tar.TypeSymlink}),
		"hard link":                    insert(recordFolder, piece{"blobs/logs/x", "/etc/shadow", tar.TypeLink}),
		"device":                       insert(recordFolder, piece{"blobs/logs/x", "", tar.TypeChar}),
		"unknown entry":                insert(recordFolder, piece{"extra", "x", tar.TypeReg}),
		"a blob twice":                 insert(recordFolder, piece{"blobs/logs/uid-db/run-1.log", "x", tar.TypeReg}),
		"database before its schema":   insert(schemaName, piece{databaseName, "x", tar.TypeReg}),
		"a second database":            insert(blobFolder, piece{databaseName, "x", tar.TypeReg}),
		"blobs after records":          insert(sumsName, piece{"blobs/logs/x", "x", tar.TypeReg}),
		"a page out of order":          insert(sumsName, piece{"etcd/000007.jsonl", "x", tar.TypeReg}),
		"no header":                    drop(headerName),
		"no records":                   drop(recordFolder),
		"no database":                  drop(databaseName),
		"a blob that is named is gone": drop(blobFolder),
		"other format":                 func(p []piece) []piece { p[0].content = `{"format": 99}`; return p },
		"key twice":                    page(line("macs/a", 1, "x") + line("macs/a", 2, "x")),
		"keys out of order":            page(line("macs/b", 1, "x") + line("macs/a", 2, "x")),
		"key above the prefix":         page(line("/macs", 1, "x")),
		"the marker of a restore":      page(line("restoring", 1, "x")),
		"who lives":                    page(line("alive/kvm1", 1, "x")),
		"no revision":                  page(line("macs/a", 0, "x")),
		"a value too big":              page(line("macs/a", 1, strings.Repeat("x", 64<<10))),
		"a key too long":               page(line(strings.Repeat("x", 5000), 1, "x")),
		"a record that is none":        page(line("servers/db", 1, "no JSON")),
		"a secret in the clear":        page(line("secrets/x", 1, "hunter2")),
		"half a line":                  page(`{"key":"macs/a"`),
		"other counts":                 page(line("macs/a", 1, "x")),
		"quarantine that is none":      page(`{"key":"macs/a","revision":1,"quarantined":true}` + "\n"),
	} {
		t.Run(name, func(t *testing.T) {
			bad := assemble(t, change(append([]piece{}, good...)))
			_, err := Verify(t.Context(), bytes.NewReader(bad))
			require.ErrorIs(t, err, errs.ErrInvalid)
			require.NotContains(t, err.Error(), "hunter2")
		})
	}
	for name, bad := range map[string][]byte{
		"not compressed": []byte("hello, this is some text and no backup"), "empty": {}, "two files": append(bytes.Clone(file), file...),
	} {
		_, err := Verify(t.Context(), bytes.NewReader(bad))
		require.ErrorIs(t, err, errs.ErrInvalid, name)
	}
}

func TestTheFileIsReadableWithOrdinaryTools(t *testing.T) {
	if _, err := exec.LookPath("sha256sum"); err != nil {
		t.Skip(err)
	}
	i := newInstallation(t)
	i.server("db")
	file, _ := i.backup(nil)
	dir := t.TempDir()
	zst, err := zstd.NewReader(bytes.NewReader(file))
	require.NoError(t, err)
	defer zst.Close()
	untar := exec.Command("tar", "-x", "-C", dir)
	untar.Stdin = zst
	output, err := untar.CombinedOutput()
	require.NoError(t, err, "%s", output)
	check := exec.Command("sha256sum", "-c", "--quiet", "SHA256SUMS")
	check.Dir = dir
	output, err = check.CombinedOutput()
	require.NoError(t, err, "%s", output)
}
