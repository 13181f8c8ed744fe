package cloudinit

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/goccy/go-yaml"

	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/manifest"
)

type netConfig struct {
	Version   int                 `yaml:"version"`
	Ethernets map[string]ethernet `yaml:"ethernets,omitempty"`
	VLANs     map[string]vlan     `yaml:"vlans,omitempty"`
}

type ethernet struct {
	Match   match  `yaml:"match"`
	SetName string `yaml:"set-name"`
	iface   `yaml:",inline"`
}

type vlan struct {
	ID    int    `yaml:"id"`
	Link  string `yaml:"link"`
	iface `yaml:",inline"`
}

type match struct {
	MAC string `yaml:"macaddress"`
}

// iface is what a NIC and a VLAN on it have in common.
type iface struct {
	MTU            int          `yaml:"mtu,omitempty"`
	DHCP4          bool         `yaml:"dhcp4"`
	DHCP6          bool         `yaml:"dhcp6"`
	DHCPIdentifier string       `yaml:"dhcp-identifier,omitempty"`
	AcceptRA       *bool        `yaml:"accept-ra,omitempty"`
	Optional       bool         `yaml:"optional,omitempty"`
	Addresses      []string     `yaml:"addresses,omitempty"`
	Routes         []route      `yaml:"routes,omitempty"`
	Nameservers    *nameservers `yaml:"nameservers,omitempty"`
}

type route struct {
	To     string `yaml:"to"`
	Via    string `yaml:"via"`
	OnLink bool   `yaml:"on-link,omitempty"`
}

type nameservers struct {
	Addresses []string `yaml:"addresses,omitempty"`
	Search    []string `yaml:"search,omitempty"`
}

// networkConfig writes the ports, with the user's own configuration over them: in
// mappings the user's entries are added and win, lists and values are replaced. A user's
// text of another version than 2 stands alone.
func networkConfig(ports []manifest.Port, own string) ([]byte, error) {
	cfg := netConfig{Version: 2, Ethernets: map[string]ethernet{}, VLANs: map[string]vlan{}}
	for _, p := range ports {
		cfg.add(p)
	}
	ours, err := yamlText(cfg)
	if err != nil || own == "" {
		return ours, err
	}
	var base, over map[string]any
	if err := yaml.Unmarshal(ours, &base); err != nil {
		return nil, err
	}
	if over, err = mapping("spec.cloudInit.networkConfig", own); err != nil {
		return nil, err
	}
	if inner, ok := over["network"].(map[string]any); ok && len(over) == 1 {
		over = inner // netplan's own files have this level, cloud-init's do not need it
	}
	if v, ok := over["version"]; ok && fmt.Sprint(v) != "2" {
		return yamlText(over)
	}
	return yamlText(overlay(base, over))
}

func (c *netConfig) add(p manifest.Port) {
	eth := ethernet{Match: match{p.MAC}, SetName: p.Eth(), iface: iface{MTU: p.MTU}}
	addressed, tagged := &eth.iface, taggedVLANs(p)
	if len(tagged) > 0 && p.NativeVLAN == 0 {
		addressed = nil
	}
	for _, id := range tagged {
		sub := vlan{ID: id, Link: p.Eth(), iface: iface{MTU: p.MTU}}
		if addressed == nil {
			settle(&sub.iface, p)
			addressed = &sub.iface
		} else {
			sub.Optional = true
		}
		c.VLANs[fmt.Sprintf("%s.%d", p.Eth(), id)] = sub
	}
	if addressed == &eth.iface {
		settle(addressed, p)
	} else {
		eth.Optional = true
	}
	c.Ethernets[p.Eth()] = eth
}

// taggedVLANs are those of a trunk that the guest sees with their tags.
func taggedVLANs(p manifest.Port) []int {
	if len(p.VLANs) < 2 {
		return nil
	}
	var ids []int
	for _, id := range p.VLANs {
		if id != p.NativeVLAN {
			ids = append(ids, id)
		}
	}
	return ids
}

// settle gives an interface the port's addresses and all that goes with them.
func settle(i *iface, p manifest.Port) {
	i.DHCP4, i.DHCP6, i.Addresses = p.DHCP4, p.DHCP6, p.Addresses
	if p.DHCP4 {
		i.DHCPIdentifier = "mac" // machine-ids of clones may be equal, MACs never are
	}
	if hasV6(p.Addresses) && !p.DHCP6 {
		no := false
		i.AcceptRA = &no // the address is given; nobody on the wire may add another
	}
	i.Optional = len(p.Addresses) == 0 && !p.DHCP4 && !p.DHCP6
	for _, gw := range p.Gateways {
		to := "0.0.0.0/0" // every renderer of cloud-init knows it; "default" is newer
		if a, err := netip.ParseAddr(gw); err == nil && a.Is6() {
			to = "::/0"
		}
		i.Routes = append(i.Routes, route{To: to, Via: gw, OnLink: !onLink(p.Addresses, gw)})
	}
	for _, r := range p.Routes {
		i.Routes = append(i.Routes, route{To: destination(r), Via: r.Via})
	}
	if len(p.Nameservers) > 0 || len(p.Search) > 0 {
		i.Nameservers = &nameservers{p.Nameservers, p.Search}
	}
}

func destination(r manifest.Route) string {
	if r.To != "default" {
		return r.To
	}
	if a, err := netip.ParseAddr(r.Via); err == nil && a.Is6() {
		return "::/0"
	}
	return "0.0.0.0/0"
}

func hasV6(addresses []string) bool {
	for _, a := range addresses {
		if p, err := netip.ParsePrefix(a); err == nil && p.Addr().Is6() {
			return true
		}
	}
	return false
}

// onLink reports whether a gateway lies in the subnet of one of the addresses.
func onLink(addresses []string, gateway string) bool {
	gw, err := netip.ParseAddr(gateway)
	if err != nil {
		return true
	}
	for _, a := range addresses {
		if p, err := netip.ParsePrefix(a); err == nil && p.Contains(gw) {
			return true
		}
	}
	return gw.IsLinkLocalUnicast()
}

// overlay puts over's entries over base's, mapping by mapping.
func overlay(base, over map[string]any) map[string]any {
	for k, v := range over {
		inner, ok1 := base[k].(map[string]any)
		mine, ok2 := v.(map[string]any)
		if ok1 && ok2 {
			v = overlay(inner, mine)
		}
		base[k] = v
	}
	return base
}

// checkYAML makes sure that the user's text is a YAML mapping before a guest finds out.
func checkYAML(field, text string) error {
	_, err := mapping(field, text)
	return err
}

// mapping reads the user's text. Duplicate keys are allowed, as cloud-init allows them.
func mapping(field, text string) (map[string]any, error) {
	var v map[string]any
	err := yaml.UnmarshalWithOptions([]byte(text), &v, yaml.AllowDuplicateMapKey())
	if err == nil {
		return v, nil
	}
	// The text may hold passwords: the line is told, not what stands there.
	where := "it is not a YAML mapping"
	var at yaml.Error
	if errors.As(err, &at) && at.GetToken() != nil {
		where = fmt.Sprintf("line %d is not YAML that makes a mapping", at.GetToken().Position.Line)
	}
	return nil, errs.NewPermanent(field, "read", errs.Reason("%w: %s", errs.ErrInvalid, where), "mend it and apply again")
}
