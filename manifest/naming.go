package manifest

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net"
	"regexp"
	"slices"
	"strings"

	"github.com/google/uuid"
)

var (
	labelPattern = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`)
	// imageNamePattern also takes dots, since images are named after versions: ubuntu24.04.
	imageNamePattern = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$`)
)

// kindWords are the words a kind is known by on the command line; the first is its own.
var kindWords = map[Kind][]string{
	KindServer:        {"server", "servers", "srv", "sv"},
	KindNetwork:       {"network", "networks", "net", "nets", "virtualnetwork", "virtualnetworks", "vn"},
	KindVolume:        {"volume", "volumes", "vol", "vols"},
	KindImage:         {"image", "images", "img", "imgs"},
	KindPlaybook:      {"playbook", "playbooks", "pb"},
	KindSecurityGroup: {"securitygroup", "securitygroups", "sg"},
	KindHost:          {"host", "hosts"},
}

// Word is the kind in references and on the command line: "server".
func (k Kind) Word() string { return strings.ToLower(string(k)) }

// Ref names a resource as users do: "server/db".
func Ref(kind Kind, name string) string { return kind.Word() + "/" + name }

// ParseKind reads a kind in any case, in the plural or by its short form.
func ParseKind(word string) (Kind, error) {
	lower := strings.ToLower(word)
	for kind, words := range kindWords {
		if slices.Contains(words, lower) {
			return kind, nil
		}
	}
	words := ownWords()
	if near := Nearest(word, words); near != "" {
		return "", fmt.Errorf("%q is not a kind; did you mean %s?", word, near)
	}
	return "", fmt.Errorf("%q is not a kind; say one of %s", word, strings.Join(words, ", "))
}

// ParseKindName reads "server db", "server/db" or a short form of either, as separate
// words or as one. The name is checked against the rules of its kind.
func ParseKindName(args ...string) (Kind, string, error) {
	if len(args) == 1 {
		args = strings.SplitN(args[0], "/", 2)
	}
	if len(args) != 2 || args[0] == "" || args[1] == "" {
		return "", "", fmt.Errorf("%q does not name a resource; write KIND NAME or KIND/NAME, as in server/db", strings.Join(args, " "))
	}
	kind, err := ParseKind(args[0])
	if err != nil {
		return "", "", err
	}
	return kind, args[1], CheckName(kind, args[1])
}

// CheckName applies the rule for names: an RFC 1123 label of at most 63 characters;
// images may have dots too, as in ubuntu24.04.
func CheckName(kind Kind, name string) error {
	pattern, may := labelPattern, "lower-case letters, digits and '-'"
	if kind == KindImage {
		pattern, may = imageNamePattern, "lower-case letters, digits, '.' and '-'"
	}
	switch {
	case len(name) > MaxNameLength:
		return fmt.Errorf("name is %d characters long; at most %d are allowed", len(name), MaxNameLength)
	case !pattern.MatchString(name):
		return fmt.Errorf("%s is not a valid name; use %s, starting and ending with a letter or digit", quote(name), may)
	}
	return nil
}

// DiskSerial is the stable serial of a data disk: its name, or, when that is longer than
// 20 bytes, the first 11 and a hash. The guest sees /dev/disk/by-id/virtio-<serial>.
func DiskSerial(name string) string { return shorten(name, MaxSerial, 8) }

// DeviceName is the host's tap for a NIC: "bw" and 10 hex digits, 12 characters.
func DeviceName(uid, nic string) string { return "bw" + digest(uid, nic)[:10] }

// BridgeName is the default bridge of a network: "br-" and at most 12 characters of its name.
func BridgeName(network string) string {
	return "br-" + shorten(network, MaxDeviceName-len("br-"), 5)
}

// NamespaceName is the network namespace of a network on every host.
func NamespaceName(network string) string { return "bw-" + network }

// DomainUUID is the libvirt UUID of a server: UUIDv5 of its uid in burrow.dev's space,
// so that a repeated define meets its own domain.
func DomainUUID(uid string) string {
	space := uuid.NewSHA1(uuid.NameSpaceDNS, []byte("burrow.dev"))
	return uuid.NewSHA1(space, []byte(uid)).String()
}

// MAC is a NIC's address by default: QEMU's prefix and a hash, so that it stays when
// other NICs go. IPAM claims it, and moves on if another server has the same.
func MAC(uid, nic string) string {
	sum := sha256.Sum256([]byte("mac\x00" + uid + "\x00" + nic))
	return net.HardwareAddr{0x52, 0x54, 0x00, sum[0], sum[1], sum[2]}.String()
}

// shorten keeps s if it fits limit bytes; otherwise its beginning, '-' where there is
// room for more than the hash, and hash hex digits of its digest.
func shorten(s string, limit, hash int) string {
	if len(s) <= limit {
		return s
	}
	return strings.TrimRight(s[:limit-hash-1], "-.") + "-" + digest(s)[:hash]
}

func digest(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(sum[:])
}

// ownWords are the words of the kinds that manifests may declare.
func ownWords() []string {
	var words []string
	for _, kind := range Kinds() {
		words = append(words, kind.Word())
	}
	slices.Sort(words)
	return words
}
