package etcdnode

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"go.etcd.io/etcd/server/v3/embed"
)

// clusterToken keeps clusters apart whose peers have the same addresses.
const clusterToken = "burrow"

// Cluster makes the node one member of several. All members are given the same Peers;
// they are read when the data folder is made, and what is in the folder counts later.
type Cluster struct {
	// Name of this member.
	Name string
	// Peers is where each member's peer listener is reached, by name; this one's too.
	Peers map[string]url.URL
	// Listen is this member's peer listener: an address of this machine.
	Listen url.URL
}

// join makes the settings of a member alone those of a member of the cluster. Peers are
// asked for the server's certificate of the same authority as clients are.
func (c *Cluster) join(settings *embed.Config, tls *TLS) {
	if c == nil {
		return
	}
	settings.Name = c.Name
	settings.ListenPeerUrls = []url.URL{c.Listen}
	settings.AdvertisePeerUrls = []url.URL{c.Peers[c.Name]}
	settings.InitialClusterToken = clusterToken
	var members []string
	for _, name := range slices.Sorted(maps.Keys(c.Peers)) {
		address := c.Peers[name]
		members = append(members, name+"="+address.String())
	}
	settings.InitialCluster = strings.Join(members, ",")
	if tls != nil {
		settings.PeerTLSInfo.CertFile = tls.Cert
		settings.PeerTLSInfo.KeyFile = tls.Key
		settings.PeerTLSInfo.TrustedCAFile = tls.CA
		settings.PeerTLSInfo.ClientCertAuth = true
		settings.PeerTLSInfo.AllowedCNs = []string{serverCommonName}
	}
}

// owns refuses a folder that was made by a member alone: etcd would ignore the cluster
// it is asked to join and serve the old data by itself.
func (c *Cluster) owns(etcd *embed.Etcd) error {
	if c == nil {
		return nil
	}
	for _, member := range etcd.Server.Cluster().Members() {
		for _, peer := range member.PeerURLs {
			if strings.HasPrefix(peer, "unix:") {
				return fmt.Errorf("%w: it was made by a member alone; take a new folder and restore a backup into the cluster", errForeignData)
			}
		}
	}
	return nil
}

// hint says what a member that does not get ready may be waiting for.
func (c *Cluster) hint() string {
	if c == nil {
		return ""
	}
	return fmt.Sprintf(" (a majority of its %d members must run)", len(c.Peers))
}
