package build

import (
	"bufio"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"strings"

	"burrow.dev/burrow/internal/errs"
)

// recipeVersion changes when the code (not the files below debian/) makes another image.
const recipeVersion = "1"

//go:embed all:debian
var recipeFiles embed.FS

// Distro is a distribution release that can be built.
type Distro struct {
	Name      string // as users say it: "debian12"
	Suite     string // as its mirrors say it: "bookworm"
	OSName    string // "debian"
	OSVersion string // "12"
	User      string // default login
}

// Distros lists what can be built, oldest first.
func Distros() []Distro {
	return []Distro{
		{Name: "debian12", Suite: "bookworm", OSName: "debian", OSVersion: "12", User: "debian"},
		{Name: "debian13", Suite: "trixie", OSName: "debian", OSVersion: "13", User: "debian"},
	}
}

// Find gives the distribution of a name; Permanent ErrInvalid when it cannot be built.
func Find(name string) (Distro, error) {
	var names []string
	for _, d := range Distros() {
		if d.Name == name {
			return d, nil
		}
		names = append(names, d.Name)
	}
	return Distro{}, errs.NewPermanent("image/"+name, "build",
		fmt.Errorf("%w: no recipe for distribution %q", errs.ErrInvalid, name),
		"what can be built: "+strings.Join(names, ", "))
}

// packages is the recipe's package list, in the file's order.
func packages() ([]string, error) {
	f, err := recipeFiles.Open("debian/packages.txt")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var names []string
	for s := bufio.NewScanner(f); s.Scan(); {
		name, _, _ := strings.Cut(s.Text(), "#")
		if name = strings.TrimSpace(name); name != "" {
			names = append(names, name)
		}
	}
	return names, nil
}

// Hash names a build by what it is made from: the recipe's files, the code's version, the
// release and the mirrors. Same hash, same image but for the packages' minor versions.
// 16 hex digits.
func Hash(d Distro, m Mirrors) (string, error) {
	h := sha256.New()
	fmt.Fprintf(h, "%s\n%s\n%s\n", recipeVersion, d.Name, m.sourcesList())
	err := fs.WalkDir(recipeFiles, "debian", func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		b, err := recipeFiles.ReadFile(path)
		fmt.Fprintf(h, "%s %d\n%s", path, len(b), b)
		return err
	})
	return hex.EncodeToString(h.Sum(nil))[:16], err
}
