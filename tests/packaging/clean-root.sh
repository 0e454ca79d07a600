#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# The Debian packages in the folder $1, as somebody meets them who installs them: a minimal Debian
# of its own is made under /tmp, apt installs them there, programs run, a program is compiled, and
# after a purge nothing is left. Needs root. Prints TAP; all that it makes goes when it ends.
# shellcheck disable=SC2016,SC2317 # the shell inside expands; the functions are called by name, through check
set -u

# Mounts are its own and end with it.
if [[ ${PRCB_CLEAN_ROOT:-} != inside ]]; then
    exec env PRCB_CLEAN_ROOT=inside unshare --mount --propagation private "$0" "$@"
fi

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
packages=$(cd "$1" && pwd)
version=$(sed -n 's/^Version: //p' "$packages"/prcb_*.changes)
# The release that they were built on.
release=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)
# Of PostgreSQL's extension, where it was built ("./dev deb --all").
postgresql=$(cd "$packages" && compgen -G 'postgresql-*-prcb_*.deb' | sed 's/_.*//;q')
work=$(mktemp -d /tmp/prcb-clean-root.XXXXXX)
root=$work/root
daemon=
# The programs, and all libraries that they and the headers need.
programs=(libprcb0 libprcb-nt0 libprcb-layout0 libprcb-stack0 prcb prcb-windows prcbd python3-prcb python3-prcb-windows)
# shellcheck source=tests/tap.sh
source "$here/../tap.sh"

finish() {
    if [[ -n $daemon ]]; then
        kill "$daemon" 2>/dev/null
        wait "$daemon" 2>/dev/null
    fi
    umount -R "$root/proc" "$root/sys" "$root/dev" "$work/bpf" 2>/dev/null
    rm -rf --one-file-system "$work"
}
trap finish EXIT

# In this shell, for some set variables.
check() { # NAME COMMAND...
    local name=$1
    shift
    "$@" >"$work/out" 2>&1
    report $? "$name" "$(tail -n 30 "$work/out")"
}

inside() {
    env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 \
        DEBIAN_FRONTEND=noninteractive HOME=/root timeout 300 chroot "$root" "$@"
}

as_nobody() {
    inside setpriv --reuid=nobody --regid=nogroup --clear-groups "$@"
}

says() { # PATTERN COMMAND...
    local pattern=$1 out
    shift
    out=$("$@" 2>&1)
    printf '%s\n' "$out"
    grep -qE "$pattern" <<<"$out"
}

make_root() {
    mmdebstrap --quiet --variant=minbase --skip=cleanup/apt "$release" "$root" &&
        cp /etc/resolv.conf "$root/etc/" && mkdir "$root/debs" && cp "$packages"/*.deb "$root/debs" &&
        mount -t proc proc "$root/proc" && mount --rbind /sys "$root/sys" &&
        mount --rbind /dev "$root/dev" && mkdir "$work/bpf" &&
        mount -t bpf bpf "$work/bpf" && mount --bind "$work/bpf" "$root/sys/fs/bpf"
}

# prcbd of the release before, which was made of the same files: for an upgrade.
make_older() {
    dpkg-deb -R "$packages"/prcbd_*.deb "$work/older" && sed -i 's/^Version: .*/Version: 0.0.9-1/' "$work/older/DEBIAN/control" &&
        dpkg-deb --root-owner-group -b "$work/older" "$root/debs/older-prcbd.deb"
}

# apt resolves their dependencies; of each other they find those of this folder.
install() { # PACKAGE...
    local files=() name
    for name in "$@"; do
        files+=("$(cd "$root" && echo ./debs/"${name}"_*.deb)")
    done
    inside sh -c 'cd / && apt-get -qq install -y --no-install-recommends "$@"' sh "${files[@]}"
}

present() { # FILE...
    local file status=0
    for file in "$@"; do
        if [[ ! -e $root/$file ]]; then
            echo "missing: $file"
            status=1
        fi
    done
    return "$status"
}

# Manual pages are left out of a minimal root's documentation only when dpkg is told to.
manuals() {
    local page status=0
    for page in man1/prcb.1 man1/prcb-stat.1 man1/prcb-why.1 man3/libprcb.3 man5/prcbd.conf.5 \
        man8/prcbd.8; do
        gzip -t "$root/usr/share/man/$page.gz" || status=1
    done
    return "$status"
}

# What /usr/local, /opt and others hold is no package's business.
only_system_folders() {
    inside sh -c 'files=$(dpkg -L "$@") || exit 1
        ! echo "$files" | grep -vE "^$|^/\.$|^/(usr|etc|lib)(/.*)?$"' sh "${programs[@]}"
}

user_exists() {
    says '^prcbd:.*:/nonexistent:.*(nologin|false)$' inside getent passwd prcbd
}

build_example() {
    inside sh -c 'cd /tmp && for name in request threads; do
        cc -Wall -Werror /usr/share/doc/libprcb-dev/examples/$name.c \
            $(pkg-config --cflags --libs libprcb) -pthread -o $name || exit 1; done'
}

build_dump_reader() {
    cp "$here/../../examples/dump.c" "$root/tmp/" &&
        inside sh -c 'cd /tmp && cc -Wall -Werror dump.c \
            $(pkg-config --cflags --libs libprcb-layout) -o dump && ! ldd dump | grep -E "bpf|pfm"'
}

build_windows() {
    cp "$here/../nt/ported.c" "$root/tmp/" &&
        inside sh -c 'cd /tmp && cc ported.c $(pkg-config --cflags --libs prcb-nt) -o ported'
}

# Everything is there, a piece of code is measured, and types reach a checker.
python_measures() {
    cat >"$root/tmp/measure.py" <<'PYTHON'
import os, sys, time, prcb, prcb.aio, prcb.web
assert prcb.__file__.startswith("/usr/lib/python3/dist-packages/"), prcb.__file__
assert os.path.exists(os.path.join(os.path.dirname(prcb.__file__), "py.typed"))
with prcb.measure() as m:
    time.sleep(0.01)
assert m.switches >= 1, m.switches
print(prcb.default_session().tier, prcb.explain(m))
if len(sys.argv) > 1:
    assert prcb.default_session().tier == sys.argv[1], prcb.default_session().tier_reason
    assert m.waits["sleep"].ns >= 9e6, m.waits
prcb.layout("KPRCB", "10.0.19041")
if sys.maxsize > 2**32:
    import prcb._stack
PYTHON
    "$@" /usr/bin/python3 /tmp/measure.py "${tier[@]}"
}

start_daemon() {
    local waited
    inside prcbd --check-config && inside mkdir -p /run/prcb-test || return 1
    printf 'socket = /run/prcb-test/socket\npin_directory = /sys/fs/bpf/prcb-test\n' \
        >"$root/tmp/test.conf"
    chroot "$root" prcbd --foreground --config /tmp/test.conf >"$work/daemon.log" 2>&1 &
    daemon=$!
    for ((waited = 0; waited < 100; waited++)); do
        if [[ -S $root/run/prcb-test/socket ]]; then
            return 0
        fi
        sleep 0.1
    done
    cat "$work/daemon.log"
    return 1
}

daemon_serves_nobody() {
    says '"tier": *"daemon"' as_nobody env PRCB_SOCKET=/run/prcb-test/socket prcb stat -j -- true
}

# A server of the package's own is told of the extension as queries.md says; its user has no privilege.
query_is_measured() {
    local release=${postgresql//[^0-9]/}
    inside sh -ec 'conf=/etc/postgresql/$1/main
        echo "shared_preload_libraries = '"'pg_stat_statements,pg_stat_prcb'"'" >>$conf/postgresql.conf
        echo "PRCB_SOCKET = '"'/run/prcb-test/socket'"'" >>$conf/environment
        echo "pg_stat_prcb.patient = on" >>$conf/postgresql.conf
        pg_ctlcluster "$1" main start' sh "$release" || return 1
    says '^daemon\|1\|t$' inside setpriv --reuid=postgres --regid=postgres --init-groups psql -d postgres -qAt \
        -c 'CREATE EXTENSION pg_stat_prcb CASCADE' -c 'SELECT pg_sleep(0.2)' \
        -c "SELECT (pg_stat_prcb_tier()).tier, calls, latch_time BETWEEN 190 AND wall_time FROM pg_stat_prcb
            WHERE query LIKE 'SELECT pg_sleep(%'"
    local status=$?
    inside pg_dropcluster --stop "$release" main && return "$status"
}

daemon_is_not_root() {
    says '^[0-9]+$' inside id -u prcbd &&
        [[ $(awk '/^Uid:/ {print $2}' "/proc/$daemon/status") == "$(inside id -u prcbd)" ]]
}

stop_daemon() {
    kill "$daemon" && wait "$daemon"
    local status=$?
    daemon=
    inside prcbd --cleanup --config /tmp/test.conf && [[ ! -e $work/bpf/prcb-test ]] &&
        rm -rf "$root/run/prcb-test" && [[ $status -eq 0 ]]
}

# With what is on the disk: booted, it has no network.
fetch_more() {
    inside sh -c 'cd / && apt-get -qq install -y --download-only --no-install-recommends pcp \
        ./debs/prcb-exporter_*.deb'
}

# Boots the root; a unit of its own runs the tests of booted.sh and turns it off. Its bpf file
# system is a new one, and nspawn's own filter of system calls, which has no bpf(2), is off.
boot() {
    umount -R "$root/proc" "$root/sys" "$root/dev"
    rm -rf "${root:?}"/run/* # a new file system at each boot
    cp "$here/booted.sh" "$root/booted.sh"
    cat >"$root/etc/systemd/system/booted.service" <<'UNIT'
[Unit]
After=multi-user.target
DefaultDependencies=no
[Service]
Type=oneshot
StandardOutput=file:/booted.out
StandardError=file:/booted.err
ExecStart=/booted.sh
ExecStopPost=/bin/systemctl --no-block poweroff
[Install]
WantedBy=default.target
UNIT
    ln -s ../booted.service "$root/etc/systemd/system/multi-user.target.wants/"
    SYSTEMD_SECCOMP=0 timeout 400 systemd-nspawn --quiet --directory="$root" --boot \
        --capability=all --keep-unit --register=no --bind="$work/bpf:/sys/fs/bpf" \
        --link-journal=no --console=pipe
    rm "$root/booted.sh" "$root/etc/systemd/system/booted.service" \
        "$root/etc/systemd/system/multi-user.target.wants/booted.service"
    cat "$root/booted.err"
    [[ -s $root/booted.out ]]
}

# Its lines, numbered as ours.
booted_results() {
    local line
    while read -r line; do
        case $line in
        ok*) report 0 "systemd:${line#ok -}" ;;
        not*) report 1 "systemd:${line#not ok -}" ;;
        *) echo "$line" ;;
        esac
    done <"$root/booted.out"
    rm "$root/booted.out" "$root/booted.err"
}

purge() {
    inside apt-get -qq purge -y "${programs[@]}" libprcb-layout-dev libprcb-nt-dev libprcb-dev ${postgresql:+"$postgresql"}
}

nothing_left() {
    local left
    rm -rf "$root/debs"
    left=$(find "$root" -xdev -name '*prcb*' -not -path "$root/var/log/*")
    left+=$(inside getent passwd prcbd)
    left+=$(inside getent group prcbd)
    left+=$(inside dpkg-query -W -f '${Package} ${db:Status-Status}\n' 2>/dev/null | grep prcb)
    printf '%s' "$left"
    [[ -z $left ]]
}

check "a clean Debian, $release" make_root
if [[ $failed -ne 0 ]]; then
    exit 1
fi
check "a prcbd of the release before" make_older
check "apt installs the programs" install "${programs[@]}"
if [[ $failed -ne 0 ]]; then
    exit 1
fi
check "prcb says its version" says "^prcb ${version%-*}\$" inside prcb --version
check "prcb doctor" says 'tier' inside prcb doctor
check "prcb stat -- true" says 'switches|SWITCHES' inside prcb stat -- true
check "prcb stat -- true as nobody" says 'switches|SWITCHES' as_nobody prcb stat -- true
tier=()
check "import prcb" python_measures inside
check "prcb layout, by prcb-windows" says 'struct KPRCB' inside prcb layout KPRCB
check "files" present usr/bin/prcb usr/sbin/prcbd etc/prcb/prcbd.conf \
    lib/systemd/system/prcbd.service lib/systemd/system/prcbd.socket \
    usr/lib/sysusers.d/prcbd.conf usr/lib/tmpfiles.d/prcbd.conf \
    usr/share/bash-completion/completions/prcb usr/share/zsh/vendor-completions/_prcb \
    usr/share/fish/vendor_completions.d/prcb.fish
check "folders" only_system_folders
check "the daemon's user" user_exists
check "the daemon starts" start_daemon
check "the daemon serves nobody" daemon_serves_nobody
if [[ -n $postgresql ]]; then
    check "apt installs $postgresql" install "$postgresql"
    check "a query of PostgreSQL is measured" query_is_measured
fi
tier=(daemon)
check "import prcb as nobody" python_measures as_nobody env PRCB_SOCKET=/run/prcb-test/socket
check "the daemon is not root" daemon_is_not_root
check "the daemon ends and cleans up" stop_daemon
check "installed once more" install "${programs[@]}"
check "a compiler" inside apt-get -qq install -y --no-install-recommends gcc libc6-dev pkgconf
check "apt installs libprcb-layout-dev" install libprcb-layout-dev libprcb-dev
check "a reader of dumps compiles" build_dump_reader
check "apt installs libprcb-nt-dev" install libprcb-nt-dev
check "manual pages" manuals
check "the examples compile" build_example
check "request runs" says 'requests, tier (daemon|bpf|perf)' inside /tmp/request 20
check "threads runs" says '^sleeper' inside /tmp/threads
check "a Windows program compiles" build_windows
check "apt installs systemd" inside apt-get -qq install -y --no-install-recommends systemd-sysv dbus
check "apt fetches pcp and what the exporter needs" fetch_more
check "the root boots" boot
if [[ -e $root/booted.out ]]; then
    booted_results
fi
check "purge" purge
check "nothing is left" nothing_left
echo "1..$number"
exit "$failed"
