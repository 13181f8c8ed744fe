#!/usr/bin/env bash
# Starts libvirt and Open vSwitch where they do not run yet: by systemd where it is the
# init system, directly elsewhere (containers). Writes what it started itself, one
# "name pid" a line, to the file given, so that it can be stopped again by id.
set -euo pipefail
started=${1:?usage: host-services.sh FILE}

note() { echo "$1 $2" >> "$started"; }

if [ -d /run/systemd/system ]; then
  systemctl start openvswitch-switch libvirtd 2>/dev/null ||
    systemctl start openvswitch-switch virtqemud.socket virtlogd.socket virtstoraged.socket virtnetworkd.socket
  exit 0
fi
if ! ovs-vsctl --timeout=2 show > /dev/null 2>&1; then
  # ovs-ctl complains of modprobe where the kernel has no module; the userspace datapath needs none.
  /usr/share/openvswitch/scripts/ovs-ctl --system-id=random start > /dev/null 2>&1 || true
  ovs-vsctl --timeout=10 show > /dev/null || { echo "Open vSwitch does not start: see /var/log/openvswitch" >&2; exit 1; }
  for d in ovsdb-server ovs-vswitchd; do note "$d" "$(cat /var/run/openvswitch/$d.pid)"; done
fi
# By pid file and not by name: a container sees the daemons of others too.
for daemon in virtlogd libvirtd; do
  pid=$(cat "/run/$daemon.pid" 2>/dev/null || true)
  if [ -z "$pid" ] || [ "$(cat "/proc/$pid/comm" 2>/dev/null)" != "$daemon" ]; then
    "$daemon" -d
    note "$daemon" "$(cat "/run/$daemon.pid")"
  fi
done
for _ in $(seq 50); do
  virsh -c qemu:///system version > /dev/null 2>&1 && exit 0
  sleep 0.2
done
echo "libvirtd does not answer: see /var/log/libvirt" >&2
exit 1
