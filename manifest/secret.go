package manifest

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"
)

// SecretPrefix starts a value that names a secret instead of being one: "secret:NAME".
const SecretPrefix = "secret:"

const (
	// MaxSecretBytes is the largest secret: encrypted and as JSON it stays below the 64 KiB
	// that a value in etcd may have.
	MaxSecretBytes = 47 << 10
	// maxSecretName bounds a secret's name.
	maxSecretName = 128
)

// Secret is what may be known of a secret that people set. Its length is not among it:
// that of a password helps to guess it.
type Secret struct {
	Name  string    `json:"name"`
	SetAt time.Time `json:"setAt"`
	SetBy string    `json:"setBy"`
	// MasterKey names the key it is encrypted under.
	MasterKey string `json:"masterKey"`
	// Current reports whether that is the one in use; false: a rotation is under way.
	Current bool `json:"current"`
}

var secretNamePattern = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$`)

// CheckSecretName refuses what cannot be the name of a secret. The error does not quote it:
// it may be a secret that somebody typed in the wrong place.
func CheckSecretName(name string) error {
	switch {
	case name == "":
		return errors.New("a secret needs a name")
	case len(name) > maxSecretName:
		return fmt.Errorf("a secret's name has at most %d characters", maxSecretName)
	case !secretNamePattern.MatchString(name):
		return errors.New("a secret's name has letters, digits, and dots, dashes and underscores between them")
	}
	return nil
}

// SecretName gives the name in "secret:NAME"; false when value is not a reference.
func SecretName(value string) (name string, ok bool) { return strings.CutPrefix(value, SecretPrefix) }
