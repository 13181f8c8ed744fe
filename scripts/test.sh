#!/usr/bin/env bash
# Runs the tests of both modules; the last line is gotestsum's. Tests of libvirt, OVS and
# guests make a hypervisor of namespaces for themselves, which needs root.
set -euo pipefail
cd "$(dirname "$0")/.."
if [ "$(id -u)" -ne 0 ]; then
  exec sudo --preserve-env=PATH,GOFLAGS,GOPROXY,GOSUMDB,GOCACHE,GOMODCACHE,HOME,CI "$0" "$@"
fi
sum=$(mktemp -d)/gotestsum; trap 'rm -rf "$(dirname "$sum")"' EXIT
GOFLAGS="-buildvcs=false -modfile=$PWD/tools/go.mod" go build -o "$sum" gotest.tools/gotestsum
# Without -vet=off the dependencies, all of Temporal's server, would be vetted for facts.
(cd devstack && CGO_ENABLED=0 GOFLAGS=-buildvcs=false "$sum" --format pkgname-and-test-fails -- -vet=off -timeout 20m "$@" ./...)
"$sum" --format pkgname-and-test-fails -- -timeout 60m "$@" ./...
