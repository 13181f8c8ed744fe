#!/bin/sh
# Runs this server's playbook inside it, for burrow, which reads how it went.
#
#   start                begins the run, once, and returns
#   go                   is the run
#   read LOG TRY EVENTS  says how it stands, and what the log and that try's events have
#                        beyond so many bytes: boot id, state, and two lines of base64
#   stop                 ends it, and forgets that it was begun
set -u
umask 022
export LC_ALL=C.UTF-8 HOME="${HOME:-/root}" DEBIAN_FRONTEND=noninteractive GIT_TERMINAL_PROMPT=0
cd "$(dirname "$0")" || exit 66
dir=$PWD
key=$(basename "$dir")
chmod 700 "$dir"
try=1
. ./run.conf

boot() { cat /proc/sys/kernel/random/boot_id; }

# state STAGE EXIT ENDED
state() {
	printf '{"stage":"%s","exit":%d,"ended":%s,"try":%d,"boot":"%s"}\n' "$1" "$2" "$3" "$try" "$(boot)" >state.new &&
		mv state.new state.json
}

say() { echo "burrow: $*" >>log.txt; }

# end STAGE EXIT
end() {
	state "$1" "$2" true
	exit 0
}

have() { command -v "$1" >/dev/null 2>&1; }

install() {
	if have apt-get; then
		apt-get -q -o DPkg::Lock::Timeout=300 update && apt-get -qy -o DPkg::Lock::Timeout=300 --no-install-recommends install "$@"
	elif have dnf; then
		dnf -qy install "$@"
	elif have zypper; then
		zypper -qn install "$@"
	elif have apk; then
		apk add --quiet "$@"
	else
		echo "no package manager that is known: apt-get, dnf, zypper, apk"
		return 1
	fi
}

# Earlier runs are over: at most one is under way.
forget_others() {
	for other in ../*/run; do
		[ "$other" = "../$key/run" ] && continue
		sh "$other" stop
		rm -rf "${other%/run}"
	done
}

# What the user's own cloud-init brings should be there, and its package manager be done.
wait_for_cloud_init() {
	have cloud-init || return 0
	left=1800
	while [ ! -e /run/cloud-init/result.json ] && [ ! -e /run/cloud-init/disabled ] && [ "$left" -gt 0 ]; do
		sleep 1
		left=$((left - 1))
	done
}

wants() {
	have ansible-playbook || printf 'ansible-core '
	[ -z "$url" ] || have git || printf 'git '
}

fetch() {
	rm -rf work
	if [ -n "$url" ]; then
		git clone --quiet --depth 1 -- "$url" work
	else
		mkdir work && tar -xzf content.tar.gz -C work
	fi
}

run() {
	(umask 077 && : >>log.txt && : >events-1.jsonl)
	forget_others
	state waiting 0 false
	wait_for_cloud_init
	need=$(wants)
	if [ -n "$need" ]; then
		state install 0 false
		say "not in the image, and installed now: $need"
		# shellcheck disable=SC2086 # names of packages
		install $need >>log.txt 2>&1 </dev/null
		code=$?
		[ -z "$(wants)" ] || end install "$code"
	fi
	state fetch 0 false
	[ -z "$url" ] || say "fetches $url"
	left=$retries
	until fetch >>log.txt 2>&1 </dev/null; do
		[ "$left" -gt 0 ] || end fetch 1
		left=$((left - 1))
		sleep "$pause"
	done
	if [ ! -f "work/$playbook" ]; then
		say "there is no file $playbook in it"
		end fetch 2
	fi
	export ANSIBLE_NOCOLOR=1 ANSIBLE_FORCE_COLOR=0 ANSIBLE_RETRY_FILES_ENABLED=False BURROW_EVENTS_FD=3
	export ANSIBLE_CALLBACK_PLUGINS="$dir/plugins:/usr/share/ansible/plugins/callback"
	while :; do
		state play 0 false
		(umask 077 && : >"events-$try.jsonl")
		(cd work && play) </dev/null >>log.txt 2>&1 3>>"events-$try.jsonl"
		code=$?
		# 2: a task failed. Nothing else is mended by trying again.
		if [ "$code" -ne 2 ] || [ "$try" -gt "$retries" ]; then
			end play "$code"
		fi
		say "retry $try of $retries"
		try=$((try + 1))
		sleep "$pause"
	done
}

chunk() {
	[ ! -f "$1" ] || tail -c "+$(($2 + 1))" "$1" | head -c 65536 | base64 | tr -d '\n'
	echo
}

case ${1-} in
start)
	mkdir started 2>/dev/null || exit 0
	state waiting 0 false
	if [ -d /run/systemd/system ] && have systemd-run; then
		systemd-run --quiet --collect --unit="burrow-play-$key" /bin/sh "$dir/run" go && exit 0
	fi
	setsid /bin/sh "$dir/run" go </dev/null >/dev/null 2>&1 &
	;;
go)
	echo $$ >pid
	run
	;;
read)
	boot
	head -c 4096 state.json 2>/dev/null | tr -d '\n'
	echo
	chunk log.txt "$2"
	chunk "events-$3.jsonl" "$4"
	;;
stop)
	pid=$(cat pid 2>/dev/null)
	if grep -q "$dir/run" "/proc/$pid/cmdline" 2>/dev/null; then
		kill -s KILL -- "-$pid"
	fi
	rm -rf started state.json log.txt events-*.jsonl pid
	;;
*)
	echo "usage: run start|go|read LOG TRY EVENTS|stop" >&2
	exit 64
	;;
esac
