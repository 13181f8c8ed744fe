package lab

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"
)

// Need is something a host has beside its namespaces.
type Need string

// Needs.
const (
	// OVS is ovsdb-server and ovs-vswitchd with an empty database.
	OVS Need = "ovs"
	// Libvirt is libvirtd and virtlogd at qemu:///system; no networks, no pools.
	Libvirt Need = "libvirt"
	// Internet is a route and a resolver by slirp4netns. Addresses on the machine's
	// loopback are not reachable through it.
	Internet Need = "internet"
)

// Inside is the environment variable that is set (to the host's name) in every
// process of a host.
const Inside = "BURROW_LAB"

// stageEnv tells a re-executed binary that it is a host's init; its value is the host as JSON.
const stageEnv = "BURROW_LAB_INIT"

// ErrNotRoot is what everybody but root gets: namespaces, bridges and libvirt need root.
var ErrNotRoot = errors.New("a lab host needs namespaces, Open vSwitch and libvirt: run as root")

// Host describes one hypervisor. The zero value is a host with a loopback only.
type Host struct {
	// Name is the host name inside; default "lab".
	Name string `json:"name"`
	// Needs are the services started before the command, in order.
	Needs []Need `json:"needs,omitempty"`
}

func (h Host) has(n Need) bool { return slices.Contains(h.Needs, n) }

// task is what init gets: the host and what to run in it.
type task struct {
	Host Host     `json:"host"`
	Argv []string `json:"argv"`
	// Resolv is the text of the host's resolv.conf; empty: the machine's own.
	Resolv string `json:"resolv,omitempty"`
}

// Main runs a package's tests inside a host with the given needs, and exits. It
// re-executes the test binary with the same arguments, so every flag of go test works.
// It fails, and does not skip, when the host cannot be made.
func Main(m *testing.M, needs ...Need) {
	Init()
	if os.Getenv(Inside) != "" {
		os.Exit(m.Run())
	}
	code, err := Host{Needs: needs}.Run(append([]string{self}, os.Args[1:]...)...)
	if err != nil {
		fmt.Fprintln(os.Stderr, "lab:", err)
		os.Exit(1)
	}
	os.Exit(code)
}

// Init turns the process into a host's init when it was started as one, and then never
// returns. A program that calls [Host.Run] calls Init first thing in main.
func Init() {
	text := os.Getenv(stageEnv)
	if text == "" {
		return
	}
	var t task
	if err := json.Unmarshal([]byte(text), &t); err != nil {
		fmt.Fprintln(os.Stderr, "lab: read task:", err)
		os.Exit(1)
	}
	code, err := t.init()
	if err != nil {
		fmt.Fprintln(os.Stderr, "lab:", err)
		os.Exit(1)
	}
	os.Exit(code)
}
