// Command lab runs a command on a hypervisor of its own, made of namespaces:
//
//	lab [--ovs] [--libvirt] [--internet] [--name NAME] CMD [ARG…]
//
// With neither --ovs nor --libvirt nor --bare, the host has Open vSwitch and libvirt. The exit code is CMD's.
// When CMD ends, everything it started ends too.
package main

import (
	"flag"
	"fmt"
	"os"

	"burrow.dev/burrow/test/lab"
)

func main() {
	lab.Init()
	name := flag.String("name", "lab", "host name inside")
	ovs := flag.Bool("ovs", false, "start Open vSwitch")
	libvirt := flag.Bool("libvirt", false, "start libvirtd and virtlogd")
	internet := flag.Bool("internet", false, "connect to the Internet (slirp4netns)")
	bare := flag.Bool("bare", false, "start nothing that is not asked for")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: lab [flags] CMD [ARG…]")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() == 0 {
		flag.Usage()
		os.Exit(2)
	}
	all := !*ovs && !*libvirt && !*bare
	host := lab.Host{Name: *name}
	wanted := map[lab.Need]bool{lab.OVS: *ovs || all, lab.Libvirt: *libvirt || all, lab.Internet: *internet}
	for _, need := range []lab.Need{lab.Internet, lab.OVS, lab.Libvirt} {
		if wanted[need] {
			host.Needs = append(host.Needs, need)
		}
	}
	code, err := host.Run(flag.Args()...)
	if err != nil {
		fmt.Fprintln(os.Stderr, "lab:", err)
		os.Exit(1)
	}
	os.Exit(code)
}
