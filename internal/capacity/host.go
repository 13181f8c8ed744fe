package capacity

import (
	"fmt"
	"slices"
	"time"
)

// Overcommit of a host that sets none.
const (
	DefaultCPUOvercommit    = 4.0
	DefaultMemoryOvercommit = 1.0
)

// Spec is the spec of a Host record: what its worker found, and what a user set.
type Spec struct {
	// Unschedulable hosts get no new servers. Set by a user; kept when the host registers again.
	Unschedulable bool `json:"unschedulable,omitempty"`
	// CPUOvercommit and MemoryOvercommit multiply capacity; 0 is the default. Set by a user, kept.
	CPUOvercommit    float64 `json:"cpuOvercommit,omitempty"`
	MemoryOvercommit float64 `json:"memoryOvercommit,omitempty"`

	// CPU is hardware threads, MemoryMiB what guests may have in all.
	CPU       int `json:"cpu"`
	MemoryMiB int `json:"memoryMiB"`
	// DefaultPool is the pool of disks that name none.
	DefaultPool string          `json:"defaultPool"`
	Pools       map[string]Pool `json:"pools"`
	// Accelerator is "kvm" or "tcg", as tested by booting; the reason says why not kvm.
	Accelerator       string            `json:"accelerator"`
	AcceleratorReason string            `json:"acceleratorReason,omitempty"`
	Versions          map[string]string `json:"versions,omitempty"` // "burrow", "libvirt", "qemu", "ovs"
}

// Pool is a storage pool of a host.
type Pool struct {
	// CapacityGiB is what burrow may fill: reservations never exceed it.
	CapacityGiB int `json:"capacityGiB"`
}

// Reservation is what a server takes of a host.
type Reservation struct {
	Owner  string `json:"owner"`  // "server/db", for messages
	CPU    int    `json:"cpu"`    // vCPUs
	Memory int    `json:"memory"` // MiB
	// DiskGiB by pool; "" is the host's default pool.
	DiskGiB map[string]int `json:"diskGiB,omitempty"`
	Since   time.Time      `json:"since"`
}

// Host is a host and what is reserved on it, by server uid.
type Host struct {
	Name   string
	Labels map[string]string
	Alive  bool
	// Lost: it was declared that the host does not come back.
	Lost         bool
	Spec         Spec
	Reservations map[string]Reservation
}

// limits gives what may be reserved in all.
func (h Host) limits() (cpu, memory float64) {
	factor := func(set, standard float64) float64 {
		if set > 0 {
			return set
		}
		return standard
	}
	return float64(h.Spec.CPU) * factor(h.Spec.CPUOvercommit, DefaultCPUOvercommit),
		float64(h.Spec.MemoryMiB) * factor(h.Spec.MemoryOvercommit, DefaultMemoryOvercommit)
}

// reserved sums up what is taken.
func (h Host) reserved() Reservation {
	sum := Reservation{DiskGiB: map[string]int{}}
	for _, r := range h.Reservations {
		sum.CPU += r.CPU
		sum.Memory += r.Memory
		for pool, gib := range r.DiskGiB {
			sum.DiskGiB[h.pool(pool)] += gib
		}
	}
	return sum
}

func (h Host) pool(name string) string {
	if name == "" {
		return h.Spec.DefaultPool
	}
	return name
}

// Lacks says what the host is short of for r: "memory 2048 of 4096 MiB free, 8192 needed".
// Empty: it has room.
func (h Host) Lacks(r Reservation) []string {
	var out []string
	cpu, memory := h.limits()
	taken := h.reserved()
	if r.CPU > 0 && float64(taken.CPU+r.CPU) > cpu {
		out = append(out, short("CPU", "vCPUs", taken.CPU, int(cpu), r.CPU))
	}
	if r.Memory > 0 && float64(taken.Memory+r.Memory) > memory {
		out = append(out, short("memory", "MiB", taken.Memory, int(memory), r.Memory))
	}
	need := map[string]int{}
	for name, gib := range r.DiskGiB {
		need[h.pool(name)] += gib
	}
	for name, gib := range need {
		pool, ok := h.Spec.Pools[name]
		switch {
		case gib <= 0:
		case !ok:
			out = append(out, fmt.Sprintf("no storage pool %q", name))
		case taken.DiskGiB[name]+gib > pool.CapacityGiB:
			out = append(out, short("pool "+name, "GiB", taken.DiskGiB[name], pool.CapacityGiB, gib))
		}
	}
	slices.Sort(out) // pools come in no order
	return out
}

func short(what, unit string, taken, limit, need int) string {
	return fmt.Sprintf("%s: %d of %d %s free, %d needed", what, max(0, limit-taken), limit, unit, need)
}

// FreeShare is the part of memory that is not reserved, 0 to 1: the measure by which
// servers are spread.
func (h Host) FreeShare() float64 {
	_, memory := h.limits()
	if memory <= 0 {
		return 0
	}
	return max(0, 1-float64(h.reserved().Memory)/memory)
}

// Matches reports whether the host has all labels of a selector.
func (h Host) Matches(selector map[string]string) bool {
	for key, value := range selector {
		if got, ok := h.Labels[key]; !ok || got != value {
			return false
		}
	}
	return true
}
