#!/usr/bin/env bash
# What CI runs before the tests. Every finding is an error.
set -euo pipefail
cd "$(dirname "$0")/.."
tool() { GOFLAGS=-buildvcs=false go tool -modfile="$PWD/tools/go.mod" "$@"; }

echo "== format"
unformatted=$(git ls-files -z '*.go' ':!*.pb.go' | xargs -0 env GOFLAGS=-buildvcs=false go tool -modfile="$PWD/tools/go.mod" gofumpt -l)
if [ -n "$unformatted" ]; then
  echo "not formatted (make fmt): $unformatted"; exit 1
fi
echo "== rules"
if git grep -nE 'time\.Sleep\(|TODO|FIXME|XXX' -- '*.go'; then
  echo "no sleeps and no marks of unfinished work: wait for the condition, open an issue"; exit 1
fi
if git grep -n '"C"$' -- '*.go' ':!internal/libvirtx'; then
  echo "cgo only in internal/libvirtx"; exit 1
fi
echo "== playbooks"
(cd playbook && ansible-lint --offline --nocolor -q)
echo "== vet"
go vet ./...
(cd devstack && CGO_ENABLED=0 GOFLAGS=-buildvcs=false go vet ./...)
echo "== staticcheck"
bin=$(mktemp -d); trap 'rm -rf "$bin"' EXIT
for t in honnef.co/go/tools/cmd/staticcheck go.temporal.io/sdk/contrib/tools/workflowcheck; do
  GOFLAGS="-buildvcs=false -modfile=$PWD/tools/go.mod" go build -o "$bin/" "$t"
done
"$bin/staticcheck" ./...
(cd devstack && CGO_ENABLED=0 GOFLAGS=-buildvcs=false "$bin/staticcheck" ./...)
echo "== workflowcheck"
"$bin/workflowcheck" -config workflows/workflowcheck.yaml ./workflows
echo "== modules"
go mod verify > /dev/null
(cd devstack && GOFLAGS=-buildvcs=false go mod verify > /dev/null)
