#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# prcb on a machine that never saw it: for each suite a fresh minimal Debian with an ordinary user
# who has sudo, a plain clone of the tree's last commit, README.md's commands as printed, then
# ./dev check. A chroot on the running kernel, so eBPF is that kernel's. Needs root and Debian's
# archive. Prints TAP; takes about an hour a suite.
#
#   roots.sh TREE [-q] [-p PART] [-k FOLDER] [SUITE]...     bookworm trixie sid where none is named
#
# -q: instead of the whole check, a build and the tests without eBPF. -p: one part alone, "readme"
# (./dev run and README.md's commands) or "check". The root is TREE/build-roots/SUITE and goes when all
# went well; the log stays.
# -k: the root is a copy of FOLDER/SUITE, which has every package that ./dev installs; where there is
# none it is made. The next run installs and fetches less, and does not see whether ./dev names all packages.
# shellcheck disable=SC2016,SC2317 # the shell inside expands; the functions are called by name
set -u

# Mounts are its own and end with it.
if [[ ${PRCB_ROOTS:-} != inside ]]; then
    exec env PRCB_ROOTS=inside unshare --mount --propagation private "$0" "$@"
fi

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
tree=$1
shift
quick=
keep=
part=
while getopts qp:k: option; do
    case $option in
    q) quick=yes ;;
    p) part=$OPTARG ;;
    k) keep=$OPTARG ;;
    *) exit 2 ;;
    esac
done
shift $((OPTIND - 1))
if [[ $part && $part != readme && $part != check ]]; then
    echo "roots.sh: there is no part '$part', only readme and check" >&2
    exit 2
fi
suites=("$@")
if [[ $# -eq 0 ]]; then
    suites=(bookworm trixie sid)
fi
# shellcheck source=tests/tap.sh
source "$here/../tap.sh"

unmount() {
    umount -R "$root/proc" "$root/sys" "$root/dev" 2>/dev/null
}

as_root_inside() {
    env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 \
        DEBIAN_FRONTEND=noninteractive HOME=/root ${DEV_JOBS:+DEV_JOBS="$DEV_JOBS"} \
        chroot "$root" "$@"
}

as_user() { # COMMAND: a line of shell, in the clone
    as_root_inside su - someone -c "export ${DEV_JOBS:+DEV_JOBS=$DEV_JOBS}; cd prcb && $1"
}

# A file system of its own for pins; the kernel's the rest.
mounts() {
    mount -t proc proc "$root/proc" && mount --rbind /sys "$root/sys" &&
        mount --rbind /dev "$root/dev" && mount -t bpf bpf "$root/sys/fs/bpf"
}

make_root() {
    rm -rf --one-file-system "$root"
    mkdir -p "$root"
    # A mirror that lags behind, or a clock that is ahead, is no reason not to test.
    mmdebstrap --quiet --variant=minbase --skip=cleanup/apt --include=ca-certificates,git,sudo \
        --aptopt='Acquire::Check-Valid-Until "false"' \
        "$suite" "$root" &&
        cp /etc/resolv.conf "$root/etc/" &&
        printf '127.0.0.1 localhost\n127.0.1.1 %s\n' "$(hostname)" >>"$root/etc/hosts" &&
        mounts &&
        as_root_inside useradd --create-home --shell /bin/bash someone &&
        echo 'someone ALL=(ALL) NOPASSWD: ALL' >"$root/etc/sudoers.d/someone" &&
        # Somebody who reads what apt is about to do would say yes.
        echo 'APT::Get::Assume-Yes "true";' >"$root/etc/apt/apt.conf.d/90yes"
}

# No file of the tree that is not in its last commit.
clone() {
    git -c safe.directory="$tree" clone --quiet --no-hardlinks "$tree" "$root/home/someone/prcb" &&
        if [[ -d $tree/../shared ]]; then cp -rH "$tree/../shared" "$root/home/someone/"; fi &&
        as_root_inside chown -R someone: /home/someone
}

# What the printed commands suppose to be there: they name a user's own build, and sqlite3.
readme_packages() {
    as_user 'sudo apt-get -qq install -y --no-install-recommends make sqlite3 python3 >/dev/null'
}

# The root that others are copied from; complete with the mark beside it.
kept_root() {
    local root=$keep/$suite status=0
    if [[ -e $root.complete ]]; then
        return
    fi
    mkdir -p "$keep" && make_root && clone && readme_packages && as_user './dev packages' || status=1
    unmount
    if [[ $status -eq 0 ]]; then
        rm -rf --one-file-system "$root"/home/someone/{prcb,shared} &&
            rm -f "$root"/var/cache/apt/archives/*.deb && touch "$root.complete"
    fi
    return "$status"
}

copy_root() {
    rm -rf --one-file-system "$root"
    cp -a --one-file-system --reflink=auto "$keep/$suite" "$root" && mounts
}

readme() {
    step "./dev run" as_user './dev run' && step "README's commands" readme_commands
}

readme_commands() {
    readme_packages && as_user "python3 tests/install/readme.py . --fresh"
}

whole_check() {
    if [[ $quick ]]; then
        as_user './dev test --no-suite bpf --no-suite tsan'
    else
        as_user 'sudo --preserve-env=DEV_JOBS ./dev check'
    fi
}

# step NAME COMMAND...: its output goes to the log, its end is shown where it fails.
step() {
    local name=$1 status
    shift
    echo "== $suite: $name" >>"$log"
    "$@" </dev/null >>"$log" 2>&1
    status=$?
    report "$status" "$suite: $name" "$(tail -n 40 "$log")"
    return "$status"
}

new_root() {
    if [[ $keep ]]; then
        step "a Debian with all packages" kept_root && step "a copy of it" copy_root
    else
        step "a fresh Debian" make_root
    fi
}

for suite in "${suites[@]}"; do
    root=$tree/build-roots/$suite
    log=$tree/build-roots/$suite.log
    mkdir -p "$tree/build-roots"
    : >"$log"
    before=$failed
    failed=0
    trap unmount EXIT
    if new_root && step "a clone" clone; then
        if [[ $part != check ]]; then readme; fi
        if [[ $part != readme ]]; then step "${quick:+part of }./dev check" whole_check; fi
    fi
    unmount
    if [[ $failed -eq 0 ]]; then
        rm -rf --one-file-system "$root"
    fi
    failed=$((failed || before))
    grep -E '^(SKIPPED|UNSTEADY|FAILED)|^[0-9]+ passed' "$log" | sed 's/^/# /'
done
echo "1..$number"
exit "$failed"
