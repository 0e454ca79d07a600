#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Builds prcb and its tests for a guest: in build/ where this machine is alike, else in
# build-guest/ARCH/build, with Debian's cross compiler against libraries that are
# unpacked, not installed.
#
#   build.sh ARCH [NINJA-ARGUMENT]...
#   GUEST_CLANG=clang-19    eBPF objects by this compiler, in a build folder of their own
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
arch=$1
work=$root/build-guest/$arch
mkdir -p "$work"
shift
# shellcheck source=/dev/null
source "$here/packages.sh"

build=$(build_folder)
options=(-Dbpf=enabled)
if [[ -n ${GUEST_CLANG:-} ]]; then
    options+=("-Dbpf_clang=$GUEST_CLANG")
fi
if [[ $(deb_arch "$arch") != "$(dpkg --print-architecture)" ]]; then
    fetch_sysroot
    printf '[constants]\nsysroot = %s\n' "'$work/sysroot'" >"$work/sysroot.cross"
    options+=(-Dman=disabled -Dbench=false -Dexamples=false
        -Dpython=disabled # its headers are those of this machine
        -Dpprof=disabled -Dpush=disabled # its libraries are not in the sysroot, nor are those of prcb record
        --cross-file "$work/sysroot.cross" --cross-file "$here/$arch.cross")
fi
if [[ ! -f $build/build.ninja ]]; then
    rm -rf "$build"
    meson setup "${options[@]}" "$build" "$root"
fi
ninja -C "$build" "$@"
