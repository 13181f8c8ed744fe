package bundle

import (
	"archive/tar"
	"bytes"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"burrow.dev/burrow/internal/errs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// tree writes files; a name that ends in "/" is a folder, a text "→x" is a symlink to x.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		switch {
		case name[len(name)-1] == '/':
			require.NoError(t, os.MkdirAll(path, 0o755))
		case len(text) > 3 && text[:3] == "→":
			require.NoError(t, os.Symlink(text[3:], path))
		default:
			require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		}
	}
	return dir
}

func listing(t *testing.T, dir string) map[string]string {
	t.Helper()
	got := map[string]string{}
	require.NoError(t, filepath.WalkDir(dir, func(p string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, _ := filepath.Rel(dir, p)
		if d.Type()&os.ModeSymlink != 0 {
			target, err := os.Readlink(p)
			got[rel] = "→" + target
			return err
		}
		text, err := os.ReadFile(p)
		got[rel] = string(text)
		return err
	}))
	return got
}

func TestRoundTripKeepsFilesModesAndInnerSymlinks(t *testing.T) {
	files := map[string]string{
		"site.yaml": "- hosts: all\n", "roles/a/tasks/main.yml": "[]\n", "roles/b": "→a", "empty": "",
		"files/ünïcode name": "x",
	}
	dir := tree(t, files)
	require.NoError(t, os.Chmod(filepath.Join(dir, "site.yaml"), 0o700))

	var buf bytes.Buffer
	digest, size, err := Pack(dir, &buf)
	require.NoError(t, err)
	require.Equal(t, int64(buf.Len()), size)
	require.Regexp(t, `^sha256:[0-9a-f]{64}$`, digest)

	out := t.TempDir()
	require.NoError(t, Unpack(bytes.NewReader(buf.Bytes()), out))
	require.Equal(t, files, listing(t, out))
	info, err := os.Stat(filepath.Join(out, "site.yaml"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o755), info.Mode().Perm())
}

func TestDigestDependsOnContentOnly(t *testing.T) {
	files := map[string]string{"a.yaml": "1", "b/c.yaml": "2"}
	one, two := tree(t, files), tree(t, files)
	require.NoError(t, os.Chtimes(filepath.Join(two, "a.yaml"), time.Unix(1, 0), time.Unix(1, 0)))
	require.NoError(t, os.Chmod(filepath.Join(two, "a.yaml"), 0o664))
	d1, _, err := Pack(one, io.Discard)
	require.NoError(t, err)
	d2, _, err := Pack(two, io.Discard)
	require.NoError(t, err)
	require.Equal(t, d1, d2)

	require.NoError(t, os.WriteFile(filepath.Join(two, "a.yaml"), []byte("3"), 0o600))
	d3, _, err := Pack(two, io.Discard)
	require.NoError(t, err)
	require.NotEqual(t, d1, d3)
}

func TestIgnoreFileKeepsThingsOut(t *testing.T) {
	dir := tree(t, map[string]string{
		IgnoreFile: "# comment\n*.iso\n/tmp/\nvendor/**/test\n!keep.iso\ndocs/\n",
		"a.iso":    "x", "keep.iso": "x", "tmp/x": "x", "roles/tmp/x": "x", "vendor/a/b/test": "x", "vendor/a/b/code": "x",
		"docs/x": "x", "roles/docs/x": "x", ".git/config": "x", "roles/x.retry": "x", "plugins/__pycache__/p.pyc": "x", "docs.yaml": "x",
	})
	var buf bytes.Buffer
	_, _, err := Pack(dir, &buf)
	require.NoError(t, err)
	out := t.TempDir()
	require.NoError(t, Unpack(&buf, out))
	got := listing(t, out)
	delete(got, IgnoreFile)
	require.Equal(t, map[string]string{"keep.iso": "x", "roles/tmp/x": "x", "vendor/a/b/code": "x", "docs.yaml": "x"}, got)
}

func TestPackRefuses(t *testing.T) {
	t.Run("symlinks that lead out", func(t *testing.T) {
		for _, target := range []string{"/etc/passwd", "../outside", "a/../../outside", "a/.."} {
			_, _, err := Pack(tree(t, map[string]string{"a/b": "x", "link": "→" + target}), io.Discard)
			require.ErrorIs(t, err, ErrEscapes)
			require.ErrorContains(t, err, "link → "+target)
			require.Equal(t, errs.Permanent, errs.ClassOf(err))
		}
	})
	t.Run("named pipes, without opening them", func(t *testing.T) {
		dir := tree(t, nil)
		require.NoError(t, syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600))
		_, _, err := Pack(dir, io.Discard)
		require.ErrorIs(t, err, ErrUnsupported)
		require.ErrorContains(t, err, "pipe is a named pipe")
	})
	t.Run("more than the limit, naming the biggest files", func(t *testing.T) {
		dir := tree(t, map[string]string{"site.yaml": "x", "files/huge.iso": "", "files/big.tar": ""})
		require.NoError(t, os.Truncate(filepath.Join(dir, "files/huge.iso"), 60<<20))
		require.NoError(t, os.Truncate(filepath.Join(dir, "files/big.tar"), 5<<20))
		_, _, err := Pack(dir, io.Discard)
		require.ErrorIs(t, err, ErrTooLarge)
		require.ErrorContains(t, err, "the biggest: files/huge.iso (60.0 MiB), files/big.tar (5.0 MiB)")
		require.ErrorContains(t, err, IgnoreFile)
	})
}

func TestAnIgnoreFileThatIsNoneIsRefused(t *testing.T) {
	_, _, err := Pack(tree(t, map[string]string{"site.yaml": "x", ".burrowignore": "→/dev/zero"}), io.Discard)
	require.ErrorContains(t, err, "read .burrowignore: ")
	pipe := tree(t, map[string]string{"site.yaml": "x"})
	require.NoError(t, syscall.Mkfifo(filepath.Join(pipe, IgnoreFile), 0o600))
	_, _, err = Pack(pipe, io.Discard)
	require.ErrorIs(t, err, ErrUnsupported)
	dir := tree(t, map[string]string{"site.yaml": "x", ".gitignore": "site.yaml\n", ".burrowignore": "→.gitignore"})
	items, err := collect(dir)
	require.NoError(t, err)
	require.Len(t, items, 2, "one inside the folder counts")
}

// archive packs raw tar headers, as an attacker would.
func archive(t testing.TB, headers ...*tar.Header) []byte {
	t.Helper()
	var buf bytes.Buffer
	enc, err := zstd.NewWriter(&buf)
	require.NoError(t, err)
	tw := tar.NewWriter(enc)
	for _, h := range headers {
		require.NoError(t, tw.WriteHeader(h))
		if h.Typeflag == tar.TypeReg {
			_, err := io.CopyN(tw, zeros{}, h.Size)
			require.NoError(t, err)
		}
	}
	require.NoError(t, tw.Close())
	require.NoError(t, enc.Close())
	return buf.Bytes()
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func TestUnpackWritesNothingOutside(t *testing.T) {
	file := func(name string) *tar.Header {
		return &tar.Header{Name: name, Typeflag: tar.TypeReg, Size: 1, Mode: 0o644}
	}
	link := func(name, to string) *tar.Header {
		return &tar.Header{Name: name, Typeflag: tar.TypeSymlink, Linkname: to}
	}
	cases := map[string][]*tar.Header{
		"climbing name":                  {file("../evil")},
		"absolute name":                  {file("/tmp/burrow-evil")},
		"climbing in the middle":         {file("a/../../evil")},
		"symlink out":                    {link("l", "../evil")},
		"absolute symlink":               {link("l", "/etc")},
		"through a symlink":              {link("a", "b"), link("b", ".."), file("a/evil")},
		"over a symlink":                 {link("l", "x"), file("l")},
		"twice":                          {file("x"), file("x")},
		"below an inner symlink":         {{Name: "b/", Typeflag: tar.TypeDir, Mode: 0o755}, link("a", "b"), file("a/x")},
		"climbing behind a symlink":      {link("b", "."), link("a", "b/..")},
		"hard link":                      {{Name: "h", Typeflag: tar.TypeLink, Linkname: "/etc/passwd"}},
		"device":                         {{Name: "d", Typeflag: tar.TypeBlock, Devmajor: 8}},
		"character device":               {{Name: "d", Typeflag: tar.TypeChar, Devmajor: 1, Devminor: 3}},
		"pipe":                           {{Name: "p", Typeflag: tar.TypeFifo}},
		"folder over a climbing symlink": {link("a", "b/../.."), {Name: "a/x/", Typeflag: tar.TypeDir, Mode: 0o755}},
	}
	for name, headers := range cases {
		t.Run(name, func(t *testing.T) {
			top := t.TempDir()
			in := filepath.Join(top, "in")
			require.NoError(t, os.Mkdir(in, 0o755))
			err := Unpack(bytes.NewReader(archive(t, headers...)), in)
			require.Error(t, err)
			require.Equal(t, errs.Permanent, errs.ClassOf(err))
			entries, err := os.ReadDir(top)
			require.NoError(t, err)
			require.Len(t, entries, 1, "something was written beside the folder")
		})
	}
}

func TestUnpackStopsBombs(t *testing.T) {
	big := &tar.Header{Name: "bomb", Typeflag: tar.TypeReg, Size: MaxBytes + 1, Mode: 0o644}
	data := archive(t, big)
	require.Less(t, len(data), 1<<20, "the bomb is small on the wire")
	dir := t.TempDir()
	require.ErrorIs(t, Unpack(bytes.NewReader(data), dir), ErrTooLarge)
	_, err := os.Stat(filepath.Join(dir, "bomb"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestUnpackStripsSetuid(t *testing.T) {
	dir := t.TempDir()
	data := archive(t, &tar.Header{Name: "su", Typeflag: tar.TypeReg, Mode: 0o6777})
	require.NoError(t, Unpack(bytes.NewReader(data), dir))
	info, err := os.Stat(filepath.Join(dir, "su"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o755), info.Mode())
}

func TestRootIsTheFolderAnsibleIsRunIn(t *testing.T) {
	cases := map[string]struct {
		files map[string]string
		paths []string
		dir   string
		rel   []string
	}{
		"the playbook's folder":   {map[string]string{"playbook/s.yaml": "", "playbook/h.yaml": ""}, []string{"playbook/s.yaml", "playbook/h.yaml"}, "playbook", []string{"s.yaml", "h.yaml"}},
		"what both share":         {map[string]string{"a/play/s.yaml": "", "a/inv/h.yaml": ""}, []string{"a/play/s.yaml", "a/inv/h.yaml"}, "a", []string{"play/s.yaml", "inv/h.yaml"}},
		"ansible.cfg above":       {map[string]string{"a/ansible.cfg": "", "a/play/s.yaml": ""}, []string{"a/play/s.yaml"}, "a", []string{"play/s.yaml"}},
		"roles above":             {map[string]string{"a/roles/x/y": "", "a/play/s.yaml": ""}, []string{"a/play/s.yaml"}, "a", []string{"play/s.yaml"}},
		"inventory is a folder":   {map[string]string{"a/s.yaml": "", "a/inv/h.yaml": ""}, []string{"a/s.yaml", "a/inv"}, "a", []string{"s.yaml", "inv"}},
		"beside the manifest":     {map[string]string{"s.yaml": ""}, []string{"./s.yaml"}, ".", []string{"s.yaml"}},
		"similar names are apart": {map[string]string{"play/s.yaml": "", "playbook/h.yaml": ""}, []string{"play/s.yaml", "playbook/h.yaml"}, ".", []string{"play/s.yaml", "playbook/h.yaml"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			base := tree(t, c.files)
			dir, rel, err := Root(base, c.paths...)
			require.NoError(t, err)
			require.Equal(t, filepath.Join(base, c.dir), dir)
			require.Equal(t, c.rel, rel)
		})
	}
	_, _, err := Root(t.TempDir(), "playbook/none.yaml")
	require.ErrorContains(t, err, "playbook file playbook/none.yaml: open: no such file or directory; paths are relative to")
	require.Equal(t, errs.Permanent, errs.ClassOf(err))
}

func FuzzUnpack(f *testing.F) {
	f.Add(archive(f, &tar.Header{Name: "a/b", Typeflag: tar.TypeReg, Size: 3, Mode: 0o644}))
	f.Add(archive(f, &tar.Header{Name: "l", Typeflag: tar.TypeSymlink, Linkname: "a"}))
	f.Add([]byte("not an archive"))
	f.Fuzz(func(t *testing.T, data []byte) {
		top := t.TempDir()
		in := filepath.Join(top, "in")
		require.NoError(t, os.Mkdir(in, 0o755))
		_ = Unpack(bytes.NewReader(data), in)
		entries, err := os.ReadDir(top)
		require.NoError(t, err)
		require.Len(t, entries, 1)
	})
}

func FuzzIgnore(f *testing.F) {
	f.Add("**/**/**/a\n!x/[", "x/y/z")
	f.Fuzz(func(t *testing.T, text, name string) { parseIgnore([]byte(text)).skips(name, false) })
}
