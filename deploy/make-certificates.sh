#!/bin/sh
# Makes a certificate authority and the three certificates that a distributed
# installation needs, or, run again, replaces the certificates and keeps the authority.
#
#   deploy/make-certificates.sh DIR NAME-OR-ADDRESS ...
#
# The names are those under which workers and people reach Temporal, etcd and the
# gateways. DIR then holds ca.pem, ca-key.pem (keep it off the machines) and
#   server.pem  for Temporal, etcd, gateways      burrow-server
#   worker.pem  for workers, the only one etcd admits   burrow-worker
#   client.pem  for people and their CLI          burrow-client
set -eu

if [ $# -lt 2 ]; then
	echo "usage: $0 DIR NAME-OR-ADDRESS ..." >&2
	exit 2
fi
dir=$1
shift
mkdir -p "$dir"
cd "$dir"
umask 077

names="DNS:localhost,IP:127.0.0.1"
for name in "$@"; do
	case $name in
	*:* | *[0-9].*[0-9].*[0-9].*[0-9]) names="$names,IP:$name" ;;
	*) names="$names,DNS:$name" ;;
	esac
done

new_key() {
	openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out "$1"
}

if [ ! -e ca-key.pem ]; then
	new_key ca-key.pem
	openssl req -x509 -new -key ca-key.pem -days 7300 -subj "/CN=burrow authority" \
		-addext "basicConstraints=critical,CA:TRUE,pathlen:0" -addext "keyUsage=critical,keyCertSign,cRLSign" -out ca.pem
fi

# issue FILE COMMON-NAME EXTENSIONS
issue() {
	[ -e "$1-key.pem" ] || new_key "$1-key.pem"
	openssl req -new -key "$1-key.pem" -subj "/CN=$2" -out request.tmp
	printf 'keyUsage=critical,digitalSignature\n%s\n' "$3" >extensions.tmp
	openssl x509 -req -in request.tmp -CA ca.pem -CAkey ca-key.pem -CAcreateserial -days 730 -extfile extensions.tmp -out "$1.pem" 2>/dev/null
	rm request.tmp extensions.tmp
}

issue server burrow-server "extendedKeyUsage=serverAuth,clientAuth
subjectAltName=$names"
issue worker burrow-worker "extendedKeyUsage=clientAuth
subjectAltName=DNS:burrow-worker"
issue client burrow-client "extendedKeyUsage=clientAuth"
chmod 644 ca.pem server.pem worker.pem client.pem
