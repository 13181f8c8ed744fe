package cloudinit

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"

	"github.com/kdomanski/iso9660"

	"burrow.dev/burrow/manifest"
)

// VolumeLabel is what makes cloud-init take an ISO for a NoCloud seed.
const VolumeLabel = "cidata"

// Config is what a guest is told.
type Config struct {
	// InstanceID names this life of the guest: cloud-init runs once for each.
	InstanceID string
	Hostname   string
	Users      []User
	// RootPassword is a crypt(3) hash; empty: root has no password.
	RootPassword string
	// HostKeyPEM and HostKeyLine are the only ssh host key the guest shows.
	HostKeyPEM  string
	HostKeyLine string
	Ports       []manifest.Port
	// Files are written, and Commands run at the end of the first boot, before the user's own.
	Files    []File
	Commands [][]string
	// UserData and NetworkConfig are the user's own text; empty: none.
	UserData      string
	NetworkConfig string
}

// File is one that the guest gets, of root.
type File struct {
	Path    string // absolute
	Mode    uint32
	Content []byte
}

// User may log in with any of the keys and use sudo without a password.
type User struct {
	Name string
	Keys []string // authorized_keys lines
	// ImageDefault: this is the login the image itself names; its shell and groups stay.
	ImageDefault bool
}

// Seed is the three files.
type Seed struct {
	MetaData, UserData, NetworkConfig []byte
}

// Render writes the files. Errors are about the user's own text only.
func Render(c Config) (Seed, error) {
	meta, err := yamlText(metaData{c.InstanceID, c.Hostname})
	if err != nil {
		return Seed{}, err
	}
	user, err := userData(c)
	if err != nil {
		return Seed{}, err
	}
	network, err := networkConfig(c.Ports, c.NetworkConfig)
	if err != nil {
		return Seed{}, err
	}
	return Seed{MetaData: meta, UserData: user, NetworkConfig: network}, nil
}

// Readdressed is the seed with other NICs.
func (s Seed) Readdressed(ports []manifest.Port, own string) (Seed, error) {
	network, err := networkConfig(ports, own)
	s.NetworkConfig = network
	return s, err
}

type metaData struct {
	InstanceID    string `yaml:"instance-id"`
	LocalHostname string `yaml:"local-hostname"`
}

// Digest is the hex SHA-256 over the files: equal for equal content, on any day.
func (s Seed) Digest() string {
	h := sha256.New()
	for _, f := range s.files() {
		fmt.Fprintf(h, "%s\x00%d\x00", f.name, len(f.content))
		h.Write(f.content)
	}
	return hex.EncodeToString(h.Sum(nil))
}

type file struct {
	name    string
	content []byte
}

func (s Seed) files() []file {
	return []file{{"meta-data", s.MetaData}, {"user-data", s.UserData}, {"network-config", s.NetworkConfig}}
}

// fileMost is the most that one file of a seed may have: a manifest's own text is far smaller, and so is a
// playbook that runs in the guest.
const fileMost = 4 << 20

// ReadISO reads what WriteISO wrote.
func ReadISO(r io.ReaderAt) (Seed, error) {
	image, err := iso9660.OpenImage(r)
	if err != nil {
		return Seed{}, fmt.Errorf("read seed: %w", err)
	}
	root, err := image.RootDir()
	if err != nil {
		return Seed{}, fmt.Errorf("read seed: %w", err)
	}
	children, err := root.GetChildren()
	if err != nil {
		return Seed{}, fmt.Errorf("read seed: %w", err)
	}
	var s Seed
	into := map[string]*[]byte{"meta-data": &s.MetaData, "user-data": &s.UserData, "network-config": &s.NetworkConfig}
	for _, f := range children {
		content, ours := into[f.Name()]
		if !ours {
			continue
		}
		if *content, err = io.ReadAll(io.LimitReader(f.Reader(), fileMost)); err != nil {
			return Seed{}, fmt.Errorf("read seed's %s: %w", f.Name(), err)
		}
		delete(into, f.Name())
	}
	if len(into) > 0 {
		return Seed{}, fmt.Errorf("read seed: %w: it lacks %d of its files", fs.ErrNotExist, len(into))
	}
	return s, nil
}

// WriteISO writes the seed's medium.
func (s Seed) WriteISO(w io.Writer) error {
	iso, err := iso9660.NewWriter()
	if err != nil {
		return fmt.Errorf("stage seed: %w", err)
	}
	defer iso.Cleanup()
	for _, f := range s.files() {
		if err := iso.AddFile(bytes.NewReader(f.content), f.name); err != nil {
			return fmt.Errorf("stage seed's %s: %w", f.name, err)
		}
	}
	if err := iso.WriteTo(w, VolumeLabel); err != nil {
		return fmt.Errorf("write seed: %w", err)
	}
	return nil
}
