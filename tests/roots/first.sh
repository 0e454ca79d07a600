#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# From nothing to the first `prcb why`, on a plain Debian: by the static file, by packages made there, and by a
# checkout. For each a minimal root of its own is made; printed are how many packages apt adds (git and the made ones
# too), how many MB these take, how long it takes, to fetch included, and how much of that processors worked. Needs
# root and Debian's archive. Prints a table and TAP; all that it makes goes.
#
#   first.sh TREE [SUITE [WAY]...]      trixie, and the three ways where none is named: static_file (TREE has it by
#                                       ./dev static), packages, checkout
# shellcheck disable=SC2016,SC2317 # the shell inside expands; the functions are called by name
set -u

# Mounts are its own and end with it.
if [[ ${PRCB_FIRST:-} != inside ]]; then
    exec env PRCB_FIRST=inside unshare --mount --propagation private "$0" "$@"
fi

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
tree=$1
suite=${2:-trixie}
ways=("${@:3}")
if [[ $# -lt 3 ]]; then
    ways=(static_file packages checkout)
fi
work=$(mktemp -d /var/tmp/prcb-first.XXXXXX)
root=
rows=()
declare -A names=([static_file]='the static file' [packages]='packages made there, `./dev deb`'
    [checkout]='a checkout, `./dev build`')
# shellcheck source=tests/tap.sh
source "$here/../tap.sh"

unmount() {
    umount -R "$1/proc" "$1/sys" "$1/dev" 2>/dev/null
}

finish() {
    for root in "$work"/*/; do unmount "$root"; done
    rm -rf --one-file-system "$work"
}
trap finish EXIT

inside() {
    env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 \
        DEBIAN_FRONTEND=noninteractive HOME=/root ${DEV_JOBS:+DEV_JOBS="$DEV_JOBS"} chroot "$root" "$@"
}

plain_debian() {
    mmdebstrap --quiet --variant=minbase --skip=cleanup/apt --include=ca-certificates \
        --aptopt='Acquire::Check-Valid-Until "false"' "$suite" "$work/plain" && cp /etc/resolv.conf "$work/plain/etc/"
}

new_root() { # NAME
    root=$work/$1
    cp -a --reflink=auto "$work/plain" "$root" && mount -t proc proc "$root/proc" && mount --rbind /sys "$root/sys" &&
        mount --rbind /dev "$root/dev"
}

installed() { # prints how many packages there are, and their KiB
    inside dpkg-query -W -f '${db:Status-Status} ${Installed-Size}\n' |
        awk '$1 == "installed" {count++; kib += $2} END {print count, kib}'
}

first_why() { # COMMAND...: of somebody who waits
    local said
    said=$(inside sh -c 'sleep 100 & "$@" why -p $! --for 0.5; kill $!' sh "$@" 2>&1)
    printf '%s\n' "$said"
    grep -q 'has been in sleep' <<<"$said"
}

# Prints the seconds of the clock, and those that processors gave to what this shell ran.
seconds() { # FILE: what `times` wrote
    LC_ALL=C awk -v clock="${EPOCHREALTIME/,/.}" -F '[ms ]+' 'END {print clock, 60 * ($1 + $3) + $2 + $4}' "$1"
}

# Each way is a function that ends with the first why. Its time is from the plain root on.
way() { # NAME FUNCTION
    local before after began ended
    new_root "$2" || return
    read -ra before < <(installed)
    times >"$work/times"
    read -ra began < <(seconds "$work/times")
    check "$1" "$2"
    times >"$work/times"
    read -ra ended < <(seconds "$work/times")
    read -ra after < <(installed)
    rows+=("$(LC_ALL=C awk -v name="$1" -v before="${before[*]} ${began[*]}" -v after="${after[*]} ${ended[*]}" 'BEGIN {
        split(before, from); split(after, to)
        printf "| %s | %d | %d MB | %.0f s | %.0f s |", name, to[1] - from[1], (to[2] - from[2]) / 1024,
            to[3] - from[3], to[4] - from[4]}')")
}

static_file() {
    cp "$tree/build-static/out/prcb" "$root/prcb" && first_why /prcb
}

clone() {
    inside sh -c 'apt-get -qq update && apt-get -qq -o Dpkg::Use-Pty=0 install -y --no-install-recommends git' &&
        git -c safe.directory="$tree" clone --quiet --no-hardlinks "$tree" "$root/src"
}

packages() { # as docs/install.md has it
    clone && inside bash -c 'cd /src && ./dev deb && apt-get -qq -o Dpkg::Use-Pty=0 install -y \
        ./build-deb/{prcb,prcb-windows,prcbd,lib*0,lib*-dev}_*.deb' && first_why prcb
}

checkout() {
    clone && inside sh -c 'cd /src && ./dev build' && first_why /src/dev prcb
}

check "a plain Debian, $suite" plain_debian
if [[ $failed -eq 0 ]]; then
    for name in "${ways[@]}"; do way "${names[$name]}" "$name"; done
fi
printf '# %s\n' '| On a plain Debian, to the first `prcb why` by | packages | installed | time | of processors |' \
    '|---|---|---|---|---|' "${rows[@]}"
echo "1..$number"
exit "$failed"
