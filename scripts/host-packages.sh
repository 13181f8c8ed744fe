#!/usr/bin/env bash
# Names the host packages that are missing and, with --install, installs them.
#
#   host-packages.sh [--install] [test]     "test" adds what only the tests need
#
# Debian 12/13, Ubuntu 22.04/24.04. Other systems: the list is in docs/install.md.
set -euo pipefail

packages=(
  libvirt-daemon-system libvirt-clients qemu-system-x86 qemu-utils   # the hypervisor
  openvswitch-switch dnsmasq-base nftables iproute2 ethtool          # its networks
  ansible-core openssh-client                                        # playbooks and logins
  mmdebstrap e2fsprogs fdisk xz-utils util-linux debian-archive-keyring # images built from packages
  gcc libc6-dev git curl procps                                      # building, scripts
)
case " $* " in
  *" test "*) packages+=(slirp4netns openssh-server ansible-lint) ;; # the lab's internet, a real sshd in it, rules for playbooks
esac

missing=()
for p in "${packages[@]}"; do
  dpkg-query -W -f='${Status}' "$p" 2>/dev/null | grep -q 'ok installed' || missing+=("$p")
done
if [ ${#missing[@]} -eq 0 ]; then
  exit 0
fi
echo "missing host packages: ${missing[*]}"
if [ "${1:-}" != --install ]; then
  echo "install them with: sudo apt-get install --no-install-recommends ${missing[*]}"
  exit 1
fi
sudo=()
if [ "$(id -u)" -ne 0 ]; then sudo=(sudo); fi
export DEBIAN_FRONTEND=noninteractive
"${sudo[@]}" apt-get update -q
# A service of a new package must not fail the install where no init system runs.
"${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "${missing[@]}"
