#!/usr/bin/env bash
# The quickstart, from nothing: services, burrow, an image, and a server with a database
# that Ansible has set up. A second run finds it all there. `make demo-clean` takes it away.
set -euo pipefail
cd "$(dirname "$0")/.."
if [ "$(id -u)" -ne 0 ]; then
  echo "burrow runs guests and networks of this machine, so the demo goes on as root"
  exec sudo --preserve-env=PATH "$0" "$@"
fi
state=${BURROW_DEMO_STATE:-/var/lib/burrow-demo}
image=${BURROW_DEMO_IMAGE:-debian12}
burrow=bin/burrow
say() { printf '\n\033[1m== %s\033[0m\n' "$*"; }

mkdir -p "$state"
say "services of this machine"
scripts/host-services.sh "$state/started"

say "burrow up"
if ! $burrow status > /dev/null 2>&1; then
  # What is not there yet is the demo's, and goes with it.
  [ -d /var/lib/burrow ] || touch "$state/data"
  getent group burrow > /dev/null || touch "$state/group"
  getent passwd burrow-ansible > /dev/null || touch "$state/user"
  $burrow up --detach
  touch "$state/up"
else
  echo "is up already"
fi

say "image $image"
if [ "$($burrow get image "$image" -o name 2>/dev/null)" = "" ]; then
  # The catalogue's table ends with the address.
  url=$($burrow image list | awk -v name="$image" '$1 == name { print $NF }')
  if [ -n "$url" ] && curl -fsIL --max-time 10 -o /dev/null "$url" 2>/dev/null; then
    $burrow image import "$image"
  else
    echo "the catalogue's server is out of reach from here: building from the distribution's packages"
    $burrow image build "$image"
  fi
  echo "$image" > "$state/image"
else
  echo "is there already"
fi

say "apply examples/quickstart"
$burrow apply -f examples/quickstart/

say "done"
$burrow get servers
cat <<EOF

log in:     burrow ssh db        (bin/burrow ssh db from here)
playbook:   burrow logs server db
Web UI:     $($burrow status | sed -n 's/.*\(http:[^ ]*\).*/\1/p' | head -1)
take away:  make demo-clean
EOF
