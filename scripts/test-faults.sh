#!/usr/bin/env bash
# Runs the tests that take minutes each: the long forms of those that kill, stop and cut off
# what Burrow stands on, and playbooks that keep guests busy. One package after the other,
# so that they do not slow each other down.
set -euo pipefail
cd "$(dirname "$0")/.."
if [ "$(id -u)" -ne 0 ]; then # hypervisors of namespaces
  exec sudo --preserve-env=PATH,GOFLAGS,GOPROXY,GOSUMDB,GOCACHE,GOMODCACHE,HOME,TIMEOUT "$0" "$@"
fi
export BURROW_FAULTS=1
if [ "${1:-}" = guarantees ]; then
  exec go test -count 1 -timeout "${TIMEOUT:-300m}" ./test/faults -run EveryOperation -guarantees "$PWD/docs/guarantees.md"
fi
go test -p 1 -count 1 -timeout "${TIMEOUT:-300m}" "$@" ./internal/etcdstate/... ./test/faults
go test -count 1 -timeout 20m ./internal/installation -run Killed
go test -count 1 -timeout 60m ./test/e2e -run "TwoServersWithOneAddress|APlaybookInTheGuest"
