#!/bin/sh
# Runs on the builder after all packages are installed; $1 is the image's root folder,
# $2 the release's code name.
# Whatever must be run by the image's own programs goes through chroot.
set -eu
root=$1

run() { chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive "$@"; }

# Locale, time zone, names.
echo 'LANG=C.UTF-8' >"$root/etc/default/locale"
echo 'Etc/UTC' >"$root/etc/timezone"
ln -snf /usr/share/zoneinfo/Etc/UTC "$root/etc/localtime"
cat >"$root/etc/hosts" <<'END'
127.0.0.1 localhost
::1 localhost ip6-localhost ip6-loopback
ff02::1 ip6-allnodes
ff02::2 ip6-allrouters
END
cat >"$root/etc/fstab" <<'END'
LABEL=burrow-root / ext4 defaults,errors=remount-ro 0 1
END

# Networking is systemd-networkd's, told by cloud-init through netplan.
run systemctl --quiet enable systemd-networkd.service systemd-resolved.service ssh.service
# Timers that fetch packages hold apt's lock just when a playbook wants it; the others
# only make the first minutes slower. They can be enabled again in the guest.
run systemctl --quiet disable apt-daily.timer apt-daily-upgrade.timer e2scrub_all.timer e2scrub_reap.service fstrim.timer dpkg-db-backup.timer
# Nothing a virtual machine has: crash dumps in firmware, foreign binaries.
run systemctl --quiet mask systemd-pstore.service modprobe@efi_pstore.service systemd-binfmt.service proc-sys-fs-binfmt_misc.automount

# The boot loader: GRUB's own modules where it looks for them, its first stage for the
# BIOS boot partition, and a configuration that update-grub replaces in the guest.
mkdir -p "$root/boot/grub/i386-pc"
cp "$root"/usr/lib/grub/i386-pc/*.mod "$root"/usr/lib/grub/i386-pc/*.lst "$root/boot/grub/i386-pc/"
run grub-mkimage --format=i386-pc --output=/boot/grub/i386-pc/core.img --prefix='(,gpt1)/boot/grub' \
	biosdisk part_gpt ext2 normal linux echo test configfile
cp "$root/usr/lib/grub/i386-pc/boot.img" "$root/boot/grub/i386-pc/boot.img"
kernel=$(cd "$root/boot" && ls -1 vmlinuz-* | sort -V | tail -n 1)
cat >"$root/boot/grub/grub.cfg" <<END
set timeout=0
linux /boot/$kernel root=LABEL=burrow-root ro console=tty0 console=ttyS0,115200n8 net.ifnames=0 consoleblank=0 no_timer_check quiet
initrd /boot/initrd.img-${kernel#vmlinuz-}
boot
END

# Nothing in the image may be one machine's: each clone makes its own.
rm -f "$root"/etc/ssh/ssh_host_* "$root/var/lib/systemd/random-seed"
run cloud-init clean --logs
find "$root/var/log" -type f -delete
rm -rf "$root"/var/cache/apt/*.bin "$root"/var/cache/apt/archives/*.deb "$root"/var/cache/ldconfig/aux-cache "$root"/tmp/* "$root"/var/tmp/*
find "$root/var/lib/apt/lists" -type f -delete
# Ansible's cache_valid_time believes this stamp, and without it the folder's time, which is
# new as soon as somebody opens the empty lists. apt.conf.d/90burrow renews it.
touch -d @0 "$root/var/lib/apt/periodic/update-success-stamp"
