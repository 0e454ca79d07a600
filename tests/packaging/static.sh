#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# The static prcb $1 in roots that have nothing for it: an empty one with /proc, /sys and /dev alone, one of
# BusyBox, and the userlands of Debian 11, 12 and 13. Needs root; BusyBox and Debian's come from its
# archive, and are left out, with a word, where they cannot be had. Prints TAP; all that it makes goes.
# shellcheck disable=SC2317 # the functions are called by name, through check
set -u

# Mounts are its own and end with it.
if [[ ${PRCB_STATIC_ROOTS:-} != inside ]]; then
    exec env PRCB_STATIC_ROOTS=inside unshare --mount --propagation private "$0" "$@"
fi

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
prcb=$(realpath "$1")
work=$(mktemp -d /tmp/prcb-static.XXXXXX)
root=$work/empty
sleeper=
# shellcheck source=tests/tap.sh
source "$here/../tap.sh"

finish() {
    if [[ -n $sleeper ]]; then kill "$sleeper"; fi
    for root in "$work"/*/; do umount -R "$root/proc" "$root/sys" "$root/dev" 2>/dev/null; done
    rm -rf --one-file-system "$work"
}
trap finish EXIT

enter() { # NAME: makes the root of that name the one that is tried, in this shell
    root=$work/$1
    check "$1: file systems" mount_all
}

mount_all() {
    mkdir -p "$root"/{proc,sys,dev,tmp} && cp "$prcb" "$root/prcb" && mount -t proc proc "$root/proc" &&
        mount --rbind /sys "$root/sys" && mount --rbind /dev "$root/dev"
}

inside() {
    env -i PATH=/bin:/usr/bin:/usr/sbin TERM=xterm timeout 60 chroot "$root" "$@"
}

says() { # PATTERN COMMAND...
    local pattern=$1 out
    shift
    out=$("$@" 2>&1)
    printf '%s\n' "$out"
    grep -qE -- "$pattern" <<<"$out"
}

opens_no_library() {
    ! readelf -lW "$prcb" | grep -E 'INTERP|NEEDED' && ! readelf -SW "$prcb" | grep -F .symtab
}

# script gives it a terminal, of a kind that nothing in the root describes; q ends it.
screen() {
    says 'prcb top' script -qec "stty rows 20 cols 90; timeout 60 chroot '$root' /prcb top" /dev/null < <(sleep 2; echo q)
}

tries() {
    local name=${root##*/}
    check "$name: version" says '^prcb [0-9.]+$' inside /prcb --version
    check "$name: doctor" says '^thread-programs +present' inside /prcb doctor
    check "$name: stat" says 'SWITCHES' inside /prcb stat -- /prcb --version
    check "$name: why" says 'has been in sleep' inside /prcb why -p "$sleeper" --for 0.2
    check "$name: cpu" says 'KERNEL|kernel' inside /prcb cpu 0.2 1
    check "$name: top -b" says 'tier bpf' inside /prcb top -b -n 1 -d 0.2
    check "$name: record" says ' samples, ' inside /prcb record -o /tmp/r.db -a --for 0.2
    check "$name: report" says 'samples of ' inside /prcb report /tmp/r.db
    check "$name: layout" says 'KPRCB' inside /prcb layout KPRCB
    check "$name: dump says what it misses" says 'no-such-file: .*No such file' inside /prcb dump /no-such-file
}

without_null() {
    umount -R "$root/dev"
    says 'needs /dev/null: No such file' inside /prcb why -p "$sleeper" --for 0.2
}

busybox_root() {
    mkdir -p "$work/busybox/bin" && (cd "$work" && apt-get -qq download busybox-static && dpkg -x busybox-static_*.deb unpacked) &&
        cp "$work"/unpacked/bin/busybox "$work/busybox/bin/" && chroot "$work/busybox" /bin/busybox --install -s /bin
}

# Keys of an old one expire before it does, and no program is configured: what is tried are its files. Where that is one
# release's way and another's is not, folders of /usr are linked to.
debian_root() { # SUITE FOLDER
    local name
    mmdebstrap --quiet --variant=extract --include=bash,coreutils,libc-bin,procps,util-linux,libtinfo6 \
        --aptopt='Acquire::Check-Valid-Until "false"' "$1" "$2" "${PRCB_MIRROR:-http://deb.debian.org/debian}" || return
    for name in bin lib lib64 sbin; do
        if [[ ! -e $2/$name ]]; then ln -s "usr/$name" "$2/$name"; fi
    done
}

sleep 1000 &
sleeper=$!
check "no library, no symbols" opens_no_library
enter empty
tries
check "empty: top on a terminal" screen
check "empty: why without /dev/null" without_null
if busybox_root >"$work/log" 2>&1; then
    enter busybox
    tries
    check "busybox: stat of its shell" says 'SWITCHES' inside /prcb stat -- /bin/sh -c 'ls >/dev/null'
else
    skip "BusyBox" "Debian's busybox-static cannot be fetched: $(tail -n 1 "$work/log")"
fi
for suite in bullseye bookworm trixie; do
    if debian_root "$suite" "$work/$suite" >"$work/log" 2>&1; then
        enter "$suite"
        tries
        check "$suite: stat of its shell" says 'SWITCHES' inside /prcb stat -- /bin/bash -c 'ls >/dev/null'
    else
        skip "Debian $suite" "it cannot be fetched: $(tail -n 1 "$work/log")"
    fi
done
echo "1..$number"
exit "$failed"
