package manifest

import (
	"fmt"
	"reflect"
	"slices"
)

// Texts of what becomes of NICs.
const (
	nicPlugged = "is plugged into the running guest; its settings are in the seed, which the guest reads at its next boot"
	nicGoes    = "is unplugged, and its addresses are free for others after the quarantine"
	nicTuned   = "VLANs, rate and filters change at once; what the guest itself must know it reads at its next boot"
)

// nics compares NICs by their names.
func (c *ServerChange) nics(old, spec []NIC) {
	said := len(c.Effects) + len(c.Refused)
	kept := 0
	for _, was := range old {
		if findNIC(spec, was.Name) != nil {
			kept++
			continue
		}
		c.DropNICs = append(c.DropNICs, was.Name)
		c.say(nicField(was.Name), nicGoes)
	}
	c.AllNICs = kept == 0
	for _, want := range spec {
		c.nic(findNIC(old, want.Name), want)
	}
	if len(c.Effects)+len(c.Refused) == said {
		c.say("spec.networkInterface", "another order, which is written down; NICs keep their names in the guest until it is rebuilt")
	}
}

// nic compares one NIC. What makes it this NIC, in the eyes of the guest and of everybody
// who talks to it, stays: network, addresses, MAC.
func (c *ServerChange) nic(was *NIC, want NIC) {
	field := nicField(want.Name)
	if was == nil {
		c.AddNICs = append(c.AddNICs, want.Name)
		c.say(field, nicPlugged)
		return
	}
	if reflect.DeepEqual(*was, want) {
		return
	}
	for _, same := range []struct {
		what string
		is   bool
	}{
		{"network", was.Network == want.Network},
		{"address", slices.Equal(was.Address, want.Address)},
		{"mac", was.MAC == want.MAC},
	} {
		if !same.is {
			c.refuse(field, fmt.Sprintf("asks for another %s, which a NIC keeps as long as it is there", same.what),
				"undo the edit, or give the NIC another name: then it is plugged in, and the one it replaces is unplugged")
			return
		}
	}
	c.TuneNICs = append(c.TuneNICs, want.Name)
	c.say(field, nicTuned)
}

func nicField(name string) string { return "spec.networkInterface " + name }

func findNIC(all []NIC, name string) *NIC {
	for i := range all {
		if all[i].Name == name {
			return &all[i]
		}
	}
	return nil
}
