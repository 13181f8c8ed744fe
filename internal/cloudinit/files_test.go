package cloudinit_test

import (
	"bytes"
	"encoding/base64"
	"io"
	"mime"
	"mime/multipart"
	"net/mail"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/stretchr/testify/require"

	"burrow.dev/burrow/internal/cloudinit"
)

// written is what of a cloud-config is about files and commands.
type written struct {
	WriteFiles []struct {
		Path, Permissions, Encoding, Content string
	} `yaml:"write_files"`
	RunCmd [][]string `yaml:"runcmd"`
}

func TestFilesAndCommandsAreInOurPartByteForByte(t *testing.T) {
	content := []byte("#!/bin/sh\n\x00\xff: {{ jinja }}\n")
	cfg := example()
	cfg.Files = []cloudinit.File{{Path: "/var/lib/x/run", Mode: 0o700, Content: content}}
	cfg.Commands = [][]string{{"/bin/sh", "/var/lib/x/run", "start"}}
	for _, own := range []string{"", "#cloud-config\nruncmd: [[own]]\nwrite_files: [{path: /own}]\n", "#!/bin/sh\necho own\n"} {
		cfg.UserData = own
		seed, err := cloudinit.Render(cfg)
		require.NoError(t, err)
		ours := seed.UserData
		if own != "" {
			parts := partsOf(t, seed.UserData)
			require.Len(t, parts, 2)
			require.Equal(t, own, parts[0], "the user's part is as it was")
			ours = []byte(parts[1])
		}
		var got written
		require.NoError(t, yaml.Unmarshal(ours, &got))
		require.Equal(t, cfg.Commands, got.RunCmd)
		require.Len(t, got.WriteFiles, 1)
		f := got.WriteFiles[0]
		require.Equal(t, []string{"/var/lib/x/run", "0700", "b64"}, []string{f.Path, f.Permissions, f.Encoding})
		back, err := base64.StdEncoding.DecodeString(f.Content)
		require.NoError(t, err)
		require.Equal(t, content, back)

		var iso bytes.Buffer
		require.NoError(t, seed.WriteISO(&iso))
		read, err := cloudinit.ReadISO(bytes.NewReader(iso.Bytes()))
		require.NoError(t, err)
		require.Equal(t, seed, read)
	}
}

// partsOf gives the parts of a MIME message.
func partsOf(t *testing.T, text []byte) []string {
	t.Helper()
	m, err := mail.ReadMessage(bytes.NewReader(text))
	require.NoError(t, err)
	_, params, err := mime.ParseMediaType(m.Header.Get("Content-Type"))
	require.NoError(t, err)
	var parts []string
	for r := multipart.NewReader(m.Body, params["boundary"]); ; {
		part, err := r.NextPart()
		if err == io.EOF {
			return parts
		}
		require.NoError(t, err)
		body, err := io.ReadAll(part)
		require.NoError(t, err)
		parts = append(parts, strings.ReplaceAll(string(body), "\r\n", "\n"))
	}
}
