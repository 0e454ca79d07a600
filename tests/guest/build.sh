#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Builds prcb and its tests for a guest, in build-guest/ARCH/build: natively, or with
# Debian's cross compiler against libraries that are unpacked, not installed.
#
#   build.sh ARCH [NINJA-OPTION]...
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
arch=$1
work=$root/build-guest/$arch
mkdir -p "$work"
shift
# shellcheck source=/dev/null
source "$here/packages.sh"

options=(-Dbpf=enabled -Dman=disabled -Dbench=false -Dexamples=false
    -Drecord=disabled -Dpprof=disabled) # their libraries are not in the guest
if [[ $(deb_arch "$arch") != "$(dpkg --print-architecture)" ]]; then
    fetch_sysroot
    printf '[constants]\nsysroot = %s\n' "'$work/sysroot'" >"$work/sysroot.cross"
    options+=(--cross-file "$work/sysroot.cross" --cross-file "$here/$arch.cross")
fi
if [[ ! -f $work/build/build.ninja ]]; then
    rm -rf "$work/build"
    meson setup "${options[@]}" "$work/build" "$root"
fi
ninja -C "$work/build" "$@"
