package cli

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	ucli "github.com/urfave/cli/v2"

	"burrow.dev/burrow/activities/image"
	"burrow.dev/burrow/internal/imagestore/build"
	imagecatalogue "burrow.dev/burrow/internal/imagestore/catalogue"
	"burrow.dev/burrow/manifest"
	"burrow.dev/burrow/workflows"
)

// imageImportCommand brings an image by URL, by file, or by its catalogue name.
func imageImportCommand() *ucli.Command {
	return &ucli.Command{
		Name:      "import",
		Usage:     "bring an image into the library: from the catalogue, a URL, or a file of the host",
		ArgsUsage: "NAME | URL | FILE",
		Flags: []ucli.Flag{
			&ucli.StringFlag{Name: "name", Usage: "`NAME` in the library; default: the file's name without its ending"},
			&ucli.StringFlag{Name: "sha256", Usage: "`HEX` that the download must have"},
			&ucli.StringFlag{Name: "checksum-url", Usage: "`URL` of a SHA256SUMS file that names the download"},
			&ucli.StringFlag{Name: "user", Usage: "default login `USER` of the image"},
			hostFlag(), queueFlag(), detachFlag(), outputFlag("table", "json"),
		},
		Action: func(c *ucli.Context) error {
			if c.NArg() != 1 {
				return usageErrorf(c, "name one image: a catalogue name, a URL or a file")
			}
			what := c.Args().First()
			if !importable(what) {
				return usageErrorf(c, "%q is no name in the catalogue, no URL, and no file here%s", what, nearOrList(what, imagecatalogue.Names()))
			}
			in := importFrom(c, what)
			if err := manifest.CheckName(manifest.KindImage, in.Name); err != nil {
				return usageErrorf(c, "%v; give it one with --name", err)
			}
			if in.User != "" {
				if err := manifest.CheckLogin(in.User); err != nil {
					return usageErrorf(c, "--user: %v", err)
				}
			}
			return createImage(c, workflows.CreateImageIn{Metadata: manifest.Metadata{Name: in.Name}, Import: &in})
		},
	}
}

// imageBuildCommand builds an image from a distribution's packages.
func imageBuildCommand() *ucli.Command {
	return &ucli.Command{
		Name:      "build",
		Usage:     "build an image from a distribution's packages, for sites without internet images",
		ArgsUsage: strings.Join(distroNames(), " | "),
		Flags: []ucli.Flag{
			&ucli.StringFlag{Name: "name", Usage: "`NAME` in the library; default: the distribution's"},
			hostFlag(), queueFlag(), detachFlag(), outputFlag("table", "json"),
		},
		Action: func(c *ucli.Context) error {
			if c.NArg() != 1 {
				return usageErrorf(c, "name one distribution")
			}
			distro := c.Args().First()
			if known := distroNames(); !slices.Contains(known, distro) {
				return usageErrorf(c, "there is no recipe for %q%s", distro, nearOrList(distro, known))
			}
			name := c.String("name")
			if name == "" {
				name = distro
			}
			if err := manifest.CheckName(manifest.KindImage, name); err != nil {
				return usageErrorf(c, "%v", err)
			}
			return createImage(c, workflows.CreateImageIn{Metadata: manifest.Metadata{Name: name}, Build: &image.BuildIn{Name: name, Distro: distro}})
		},
	}
}

// imageDeleteCommand is `burrow delete image`, where people look for it first.
func imageDeleteCommand() *ucli.Command {
	return &ucli.Command{
		Name: "delete", Usage: "delete an image that no disk needs", ArgsUsage: "NAME ...",
		Flags: []ucli.Flag{
			&ucli.BoolFlag{Name: "yes", Aliases: []string{"y"}, Usage: "do not ask"},
			leaveFlag(), outputFlag("table", "json"),
		},
		Action: func(c *ucli.Context) error {
			if c.NArg() == 0 {
				return usageErrorf(c, "name an image")
			}
			var refs []Ref
			for _, name := range c.Args().Slice() {
				refs = append(refs, Ref{Kind: manifest.KindImage, Name: strings.TrimPrefix(name, "image/")})
			}
			return removeRefs(c, refs)
		},
	}
}

func hostFlag() ucli.Flag {
	return &ucli.StringFlag{Name: "host", Usage: "`HOST` that gets it first; default: any that is alive"}
}

// importable reports whether a word can be an image's source. A path may be of a host
// that is not this one; a bare name that is no file here is more likely a slip.
func importable(what string) bool {
	if _, ok := imagecatalogue.Find(what); ok || strings.Contains(what, "/") {
		return true
	}
	_, err := os.Stat(what)
	return err == nil
}

func distroNames() []string {
	var names []string
	for _, d := range build.Distros() {
		names = append(names, d.Name)
	}
	return names
}

// nearOrList suggests the known name that is near, else all of them.
func nearOrList(word string, known []string) string {
	if near := didYouMean(word, known); near != "" {
		return near
	}
	return "; say one of " + strings.Join(known, ", ")
}

// importFrom reads what a person named: a catalogue name, a URL, or a path.
func importFrom(c *ucli.Context, what string) image.ImportIn {
	in := image.ImportIn{
		Name: c.String("name"), SHA256: c.String("sha256"), ChecksumURL: c.String("checksum-url"), User: c.String("user"),
	}
	if e, ok := imagecatalogue.Find(what); ok {
		in.URL, in.OSName, in.OSVersion = e.URL, e.OSName, e.OSVersion
		in.Name = firstOf(in.Name, e.Name)
		in.User = firstOf(in.User, e.User)
		if in.SHA256 == "" {
			in.ChecksumURL = firstOf(in.ChecksumURL, e.ChecksumURL)
		}
		return in
	}
	if in.Name == "" {
		in.Name = strings.ToLower(strings.SplitN(filepath.Base(what), ".", 2)[0])
	}
	if strings.Contains(what, "://") {
		in.URL = what
		return in
	}
	if abs, err := filepath.Abs(what); err == nil {
		what = abs
	}
	in.File = what
	return in
}

func firstOf(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// createImage starts the operation and follows it.
func createImage(c *ucli.Context, in workflows.CreateImageIn) error {
	tc, err := openTemporal(c)
	if err != nil {
		return err
	}
	defer tc.Close()
	in.Host, in.RequestedBy = c.String("host"), requestedBy()
	ref := Ref{Kind: manifest.KindImage, Name: in.Metadata.Name}
	t, err := begin(c, tc, ref, "bring "+ref.String(), workflows.Operation{CreateImage: &in})
	if err != nil {
		return err
	}
	return followed(c, tc, t)
}
