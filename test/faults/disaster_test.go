package faults

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"go.temporal.io/sdk/client"
	"golang.org/x/sys/unix"

	"burrow.dev/burrow/workflows"
)

// disaster kills a part of the world under a step: the step goes on while the part is away.
func disaster(strike func(*site, context.Context, func() error) error) func(context.Context, *subject, place, client.WorkflowRun) error {
	return func(ctx context.Context, c *subject, at place, _ client.WorkflowRun) error {
		if err := c.reached(ctx, at.activity, 1); err != nil {
			return err
		}
		c.struck.Lock()
		defer c.struck.Unlock()
		return strike(c.site, ctx, func() error { return c.orders.release(c.ref(), at.activity) })
	}
}

// crashDevstack kills Temporal and etcd, which are one process; its keeper starts it again.
func (s *site) crashDevstack(ctx context.Context, meanwhile func() error) error {
	_ = os.Remove(s.conf.Folder.DevstackReport()) // the next one writes its own
	s.devstack.crash()
	return errors.Join(meanwhile(), s.devstack.ready(ctx))
}

// crashLeader kills the leader of etcd's three members. The step meets two that have none.
func (s *site) crashLeader(ctx context.Context, meanwhile func() error) error {
	leader := s.cluster.Leader(ctx)
	s.cluster.Kill(leader)
	err := meanwhile()
	s.cluster.Restart(leader)
	s.cluster.AwaitHealthy(ctx)
	return err
}

func (s *site) crashLibvirt(ctx context.Context, meanwhile func() error) error {
	err := killDaemons(ctx, "libvirtd")
	return errors.Join(err, meanwhile(), start("libvirtd", "-d"))
}

func (s *site) crashSwitch(ctx context.Context, meanwhile func() error) error {
	err := killDaemons(ctx, "ovs-vswitchd", "ovsdb-server")
	return errors.Join(err, meanwhile(), start("/usr/share/openvswitch/scripts/ovs-ctl", "--no-mlockall", "start"))
}

// killGuest kills the QEMU of the subject's server.
func killGuest(ctx context.Context, c *subject, at place, _ client.WorkflowRun) error {
	if err := c.reached(ctx, at.activity, 1); err != nil {
		return err
	}
	pids := c.guest()
	if len(pids) != 1 {
		return fmt.Errorf("%d processes are its guest", len(pids))
	}
	if err := syscall.Kill(pids[0], syscall.SIGKILL); err != nil {
		return err
	}
	return errors.Join(until(ctx, "the guest is dead", func() error {
		if pids := c.guest(); len(pids) > 0 {
			return fmt.Errorf("%v run", pids)
		}
		return nil
	}), c.orders.release(c.ref(), at.activity))
}

// guest is the subject's QEMU: one process, or none.
func (c *subject) guest() []int { return processes("guest=" + c.name + ",") }

// start runs a command that goes to the background. A pipe would be inherited by the
// daemon, and waited for.
func start(name string, args ...string) error {
	if err := exec.Command(name, args...).Run(); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// killDaemons kills every process of this hypervisor with one of the programs' names, and
// returns when they are gone: one that still dies has its files locked.
func killDaemons(ctx context.Context, names ...string) error {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return err
	}
	var killed []int
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err == nil && slices.Contains(names, comm(pid)) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
			killed = append(killed, pid)
		}
	}
	if len(killed) == 0 {
		return fmt.Errorf("none of %v runs", names)
	}
	return until(ctx, fmt.Sprintf("%v are dead", names), func() error {
		for _, pid := range killed {
			if slices.Contains(names, comm(pid)) {
				return fmt.Errorf("process %d is there", pid)
			}
		}
		return nil
	})
}

// comm is the name of a process's program; "" when it is gone. One that has ended and that
// nobody has asked how is still there: ovs-ctl takes it for running, and starts nothing.
func comm(pid int) string {
	name, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "comm"))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(name))
}

// fill leaves no room on the pool's disk.
func (s *site) fill() error {
	var disk unix.Statfs_t
	if err := unix.Statfs(s.conf.Worker.PoolDir(), &disk); err != nil {
		return err
	}
	used := (disk.Blocks - disk.Bfree) * uint64(disk.Bsize)
	return unix.Mount("tmpfs", s.conf.Worker.PoolDir(), "tmpfs", unix.MS_REMOUNT, fmt.Sprintf("size=%d", used))
}

// room gives the pool's disk its size again.
func (s *site) room() error {
	return unix.Mount("tmpfs", s.conf.Worker.PoolDir(), "tmpfs", unix.MS_REMOUNT, poolOptions)
}

func diskFull(ctx context.Context, c *subject, at place, run client.WorkflowRun) error {
	if err := c.reached(ctx, at.activity, 1); err != nil {
		return err
	}
	if err := c.fill(); err != nil {
		return err
	}
	err := c.orders.release(c.ref(), at.activity)
	if err == nil {
		_, err = c.finish(ctx, run)
	}
	return errors.Join(err, c.room())
}

func diskFullThenRoom(ctx context.Context, c *subject, at place, run client.WorkflowRun) error {
	if err := c.reached(ctx, at.activity, 1); err != nil {
		return err
	}
	if err := c.fill(); err != nil {
		return err
	}
	err := errors.Join(c.orders.release(c.ref(), at.activity), c.held(ctx, run), c.room())
	if err != nil {
		return err
	}
	return c.decide(ctx, run, workflows.UpdateRetry, workflows.RetryIn{})
}

// keysLater lets the key server answer once it was asked in vain.
func keysLater(ctx context.Context, c *subject, at place, _ client.WorkflowRun) error {
	err := c.reached(ctx, at.activity, 1)
	if err == nil {
		err = until(ctx, "the key server is asked", func() error {
			if c.site.keys.asked(c.name) == 0 {
				return errors.New("not yet")
			}
			return nil
		})
	}
	c.site.keys.heal(c.name)
	return err
}
