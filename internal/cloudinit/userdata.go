package cloudinit

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"mime/multipart"
	"net/mail"
	"net/textproto"
	"strings"

	"burrow.dev/burrow/internal/errs"
)

const cloudConfigHeader = "#cloud-config\n"

// mergeOurs says how our part joins what the user's parts said before it: their values
// stay, our list entries come first (of two entries for one login cloud-init keeps the
// first), our other keys are added. Thus the user's text wins, and the login that burrow
// itself needs cannot get lost.
const mergeOurs = "list(prepend)+dict(no_replace,recurse_list)+str()"

// cloudConfig is our part. Only keys that every cloud-init since 22.1 accepts.
type cloudConfig struct {
	PreserveHostname bool              `yaml:"preserve_hostname"`
	Hostname         string            `yaml:"hostname"`
	ManageEtcHosts   string            `yaml:"manage_etc_hosts"`
	Users            []any             `yaml:"users"`
	DisableRoot      bool              `yaml:"disable_root"`
	SSHPasswordAuth  bool              `yaml:"ssh_pwauth"`
	Chpasswd         *chpasswd         `yaml:"chpasswd,omitempty"`
	SSHDeleteKeys    bool              `yaml:"ssh_deletekeys"`
	SSHKeys          map[string]string `yaml:"ssh_keys"`
	Growpart         growpart          `yaml:"growpart"`
	ResizeRootfs     bool              `yaml:"resize_rootfs"`
	Updates          updates           `yaml:"updates"`
	// What follows is left out: each costs seconds of a first boot and does nothing here.
	Locale        string        `yaml:"locale"`
	GrubDpkg      enabled       `yaml:"grub_dpkg"`
	SSHConsole    consoleKeys   `yaml:"ssh"`
	PublishKeys   enabled       `yaml:"ssh_publish_hostkeys"`
	Fingerprints  bool          `yaml:"no_ssh_fingerprints"`
	PackageUpdate bool          `yaml:"package_update"`
	Apt           *aptUnchanged `yaml:"apt,omitempty"`
	WriteFiles    []writeFile   `yaml:"write_files,omitempty"`
	RunCmd        [][]string    `yaml:"runcmd,omitempty"`
}

type (
	// updates: the guest reads its network-config at every boot, so that NICs which come
	// and go while it stands are configured.
	updates struct {
		Network updatesWhen `yaml:"network"`
	}
	updatesWhen struct {
		When []string `yaml:"when"`
	}
	writeFile struct {
		Path        string `yaml:"path"`
		Permissions string `yaml:"permissions"`
		Encoding    string `yaml:"encoding"`
		Content     string `yaml:"content"`
	}
	enabled struct {
		Enabled bool `yaml:"enabled"`
	}
	consoleKeys struct {
		EmitKeys bool `yaml:"emit_keys_to_console"`
	}
	aptUnchanged struct {
		PreserveSources bool `yaml:"preserve_sources_list"`
	}
	growpart struct {
		Mode    string   `yaml:"mode"`
		Devices []string `yaml:"devices"`
	}
	chpasswd struct {
		Expire bool           `yaml:"expire"`
		Users  []passwordUser `yaml:"users"`
	}
	passwordUser struct {
		Name     string `yaml:"name"`
		Password string `yaml:"password"`
		Type     string `yaml:"type"`
	}
	userEntry struct {
		Name       string   `yaml:"name"`
		Shell      string   `yaml:"shell,omitempty"`
		Sudo       string   `yaml:"sudo"`
		LockPasswd bool     `yaml:"lock_passwd"`
		Keys       []string `yaml:"ssh_authorized_keys"`
	}
)

// userData writes our cloud-config alone, or after the user's parts in one MIME message.
func userData(c Config) ([]byte, error) {
	ours, err := ourConfig(c)
	if err != nil || strings.TrimSpace(c.UserData) == "" {
		return ours, err
	}
	kind, body, err := userPart(c.UserData)
	if err != nil {
		return nil, err
	}
	// From the text itself: equal content gives equal seeds, and it does not occur in it.
	sum := sha256.Sum256([]byte(c.UserData))
	boundary := fmt.Sprintf("burrow-%x", sum[:16])
	var b bytes.Buffer
	fmt.Fprintf(&b, "Content-Type: multipart/mixed; boundary=%q\nMIME-Version: 1.0\n\n", boundary)
	w := multipart.NewWriter(&b)
	if err := w.SetBoundary(boundary); err != nil {
		return nil, err
	}
	parts := []struct {
		header textproto.MIMEHeader
		body   []byte
	}{
		{textproto.MIMEHeader{"Content-Type": {kind}}, body},
		{textproto.MIMEHeader{"Content-Type": {`text/cloud-config; charset="utf-8"`}, "Merge-Type": {mergeOurs}}, ours},
	}
	for _, p := range parts {
		p.header.Set("MIME-Version", "1.0")
		part, err := w.CreatePart(p.header)
		if err != nil {
			return nil, err
		}
		if _, err := part.Write(p.body); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

func ourConfig(c Config) ([]byte, error) {
	cfg := cloudConfig{
		Hostname: c.Hostname, ManageEtcHosts: "localhost", Users: users(c.Users), DisableRoot: true,
		SSHDeleteKeys: true, SSHKeys: map[string]string{"ed25519_private": c.HostKeyPEM, "ed25519_public": c.HostKeyLine},
		Growpart: growpart{Mode: "auto", Devices: []string{"/"}}, ResizeRootfs: true,
		Updates: updates{updatesWhen{[]string{"boot-new-instance", "boot"}}},
		Locale:  "C.UTF-8", Fingerprints: true, Apt: &aptUnchanged{PreserveSources: true},
	}
	if c.RootPassword != "" {
		cfg.Chpasswd = &chpasswd{Users: []passwordUser{{"root", c.RootPassword, "hash"}}}
	}
	for _, f := range c.Files {
		cfg.WriteFiles = append(cfg.WriteFiles, writeFile{
			f.Path, fmt.Sprintf("%04o", f.Mode), "b64", base64.StdEncoding.EncodeToString(f.Content),
		})
	}
	cfg.RunCmd = c.Commands
	text, err := yamlText(cfg)
	if err != nil {
		return nil, err
	}
	return append([]byte(cloudConfigHeader), text...), nil
}

// users gives the entries. "default" stands first for the image's own login, so that
// cloud-init joins the image's groups and shell with our entry of that name.
func users(all []User) []any {
	var entries []any
	for _, u := range all {
		entry := userEntry{Name: u.Name, Sudo: "ALL=(ALL) NOPASSWD:ALL", LockPasswd: true, Keys: u.Keys}
		if u.ImageDefault {
			entries = append(entries, "default")
		} else {
			entry.Shell = "/bin/bash"
		}
		entries = append(entries, entry)
	}
	return entries
}

// starts are the first words of user data and the part type they stand for, as
// cloud-init knows them.
var starts = []struct{ prefix, kind string }{
	{"## template: jinja", "text/jinja2"},
	{"#cloud-config-archive", "text/cloud-config-archive"},
	{"#cloud-config", "text/cloud-config"},
	{"#cloud-boothook", "text/cloud-boothook"},
	{"#include-once", "text/x-include-once-url"},
	{"#include", "text/x-include-url"},
	{"#part-handler", "text/part-handler"},
	{"#!", "text/x-shellscript"},
}

// userPart gives the type and body of the user's text: one of cloud-init's formats, or a
// MIME message whose parts are taken as they are.
func userPart(text string) (kind string, body []byte, err error) {
	text = strings.ReplaceAll(text, "\r\n", "\n")
	for _, s := range starts {
		if strings.HasPrefix(text, s.prefix) {
			if s.kind == "text/cloud-config" {
				if err := checkYAML("spec.cloudInit.userData", text); err != nil {
					return "", nil, err
				}
			}
			return s.kind + `; charset="utf-8"`, []byte(text), nil
		}
	}
	if m, err := mail.ReadMessage(strings.NewReader(text)); err == nil && strings.HasPrefix(m.Header.Get("Content-Type"), "multipart/") {
		var b bytes.Buffer
		_, err := b.ReadFrom(m.Body)
		return m.Header.Get("Content-Type"), b.Bytes(), err
	}
	return "", nil, errs.NewPermanent("spec.cloudInit.userData", "read",
		errs.Reason("%w: its first line says no format that cloud-init knows", errs.ErrInvalid),
		`begin it with "#cloud-config", "#!/bin/sh" or another of cloud-init's headers`)
}
