package worker

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"golang.org/x/sys/unix"

	"burrow.dev/burrow/internal/capacity"
)

// measureEvery is how soon a pool's disk that grew, shrank or was mounted anew is known
// to placement.
const measureEvery = 30 * time.Second

// register writes what this host is and has into its record, and gives the pool's size.
func (h *host) register(ctx context.Context) error {
	info, err := h.libvirt.Host(ctx)
	if err != nil {
		return err
	}
	if h.poolGiB, err = h.poolSize(); err != nil {
		return err
	}
	libvirtVersion, hypervisor, err := h.libvirt.Version(ctx)
	if err != nil {
		return err
	}
	return h.store.RegisterHost(ctx, h.Config.Host.Name, nil, capacity.Spec{
		CPU: info.CPUs, MemoryMiB: info.MemoryMiB, DefaultPool: h.Config.Host.Pool,
		Pools:       map[string]capacity.Pool{h.Config.Host.Pool: {CapacityGiB: h.poolGiB}},
		Accelerator: h.accel.Accelerator, AcceleratorReason: h.accel.Reason,
		Versions: map[string]string{"burrow": h.Version, "libvirt": libvirtVersion, "qemu": hypervisor},
	})
}

// poolSize is the size in GiB of the disk that the pool is on, as it is now: libvirt knows
// it only as of its last refresh, which reads the whole pool.
func (h *host) poolSize() (int, error) {
	var disk unix.Statfs_t
	if err := unix.Statfs(h.Config.PoolDir(), &disk); err != nil {
		return 0, fmt.Errorf("measure the pool's disk: %w", err)
	}
	return int(disk.Blocks * uint64(disk.Bsize) >> 30), nil
}

// measure registers the host again when its pool's disk has another size, until ctx ends.
func (h *host) measure(ctx context.Context) {
	tick := time.NewTicker(measureEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		size, err := h.poolSize()
		if err == nil && size != h.poolGiB {
			err = h.register(ctx)
		}
		if err != nil && ctx.Err() == nil {
			h.Log.Error("capacity not known", slog.Any("error", err))
		}
	}
}
