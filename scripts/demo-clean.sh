#!/usr/bin/env bash
# Takes away what `make demo` made, and only that: the quickstart's resources, and then
# burrow and the services that the demo itself had started. Where anything else is in burrow
# by then, burrow stays, and so does what that may need.
set -euo pipefail
cd "$(dirname "$0")/.."
if [ "$(id -u)" -ne 0 ]; then exec sudo --preserve-env=PATH "$0" "$@"; fi
state=${BURROW_DEMO_STATE:-/var/lib/burrow-demo}
burrow=bin/burrow
if [ ! -d "$state" ]; then
  echo "no demo is here"
  exit 0
fi
gone() { # gone KIND NAME: deletes it when it is there
  if [ -n "$($burrow get "$1" "$2" -o name 2>/dev/null)" ]; then $burrow delete "$1" "$2" -y; fi
}
image=$(cat "$state/image" 2>/dev/null || true)
others() { # others: all that the demo did not make
  local kind
  for kind in server volume network image playbook; do $burrow get "$kind" -o name; done |
    grep -vxE "server/db|volume/data-1|network/(db-net|host-bridge)|image/${image:-none}" || true
  $burrow secret list -o name
}
if $burrow status > /dev/null 2>&1; then
  gone server db
  gone volume data-1
  gone network db-net
  theirs=$(others)
  if [ -n "$theirs" ]; then
    echo "the demo's server is gone. Burrow stays, with what is yours, until \`make demo-clean\` finds nothing of it:"
    echo "$theirs"
    exit 0
  fi
  if [ -n "$image" ]; then gone image "$image"; fi
  if [ -f "$state/up" ]; then
    gone network host-bridge
    $burrow down
    if [ -f "$state/data" ]; then
      virsh -q -c qemu:///system pool-destroy burrow || true
      virsh -q -c qemu:///system pool-undefine burrow || true
      rm -rf /var/lib/burrow
    fi
    if [ -f "$state/user" ]; then userdel burrow-ansible; fi
    if [ -f "$state/group" ]; then groupdel burrow; fi
  fi
fi
if [ -f "$state/started" ]; then
  # The order is the reverse of the start; a pid that another program has by now is left alone.
  tac "$state/started" | while read -r name pid; do
    if [ "$(cat "/proc/$pid/comm" 2>/dev/null)" = "$name" ]; then kill "$pid"; fi
  done
fi
rm -rf "$state"
echo "the demo is gone; /var/cache/burrow keeps the image for the next one, and net.ipv4.ip_forward stays as it is"
