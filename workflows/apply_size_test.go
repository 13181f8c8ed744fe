package workflows

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/manifest"
)

func TestAnApplyThatIsTooLargeIsRefusedBeforeItStarts(t *testing.T) {
	documents := func(n, size int) ApplyIn {
		in := ApplyIn{}
		for range n {
			in.Documents = append(in.Documents, Document{Ref: "server/db", Server: &ProvisionServerIn{
				Spec: manifest.ServerSpec{Auth: manifest.Auth{PublicKey: []string{strings.Repeat("k", size)}}},
			}})
		}
		return in
	}
	require.NoError(t, documents(MostDocuments, 4<<10).Fits())
	many := documents(MostDocuments+1, 1).Fits()
	require.ErrorContains(t, many, "251 are to be built or changed, and one apply takes 250")
	require.Equal(t, errs.Permanent, errs.ClassOf(many))
	require.ErrorContains(t, documents(MostDocuments, 8<<10).Fits(), "KiB, and one apply takes 1536")
}
