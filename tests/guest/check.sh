#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# The tests that ./dev check runs in a guest: builds them for it, boots it, runs
# laws, causes, quotas, 32-bit tasks, edges, storms, hotplug and, on arm64, the sequence count and spans. Results: see guest.sh, in
# build-guest/ARCH or, with a kernel that is named, build-guest/ARCH-KERNEL.
# Exit status 77, with the reason as last line: what the guest is made of cannot be had.
#
#   check.sh ARCH            all of it
#   check.sh ARCH --list     prints the tests' names
#   check.sh ARCH --build    fetches and builds only
#   GUEST_CLANG=clang-19     with eBPF objects by this compiler, what they may differ in
#   GUEST_KERNEL=NAME        on this kernel of kernels.py's; else x86_64: the oldest, arm64: 6.1's newest
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
arch=$1
work=$root/build-guest/$arch${GUEST_KERNEL:+-$GUEST_KERNEL}${GUEST_CLANG:+-$GUEST_CLANG}
# shellcheck source=/dev/null
source "$here/packages.sh"

build=$(build_folder)
tests=$build/tests

# Limits that only something that hangs comes near: boots, then all commands. All of it, with
# what is built, has one in dev.
export GUEST_BOOTING=200
options=(-t "${GUEST_SECONDS:-700}")
commands=() targets=(src/kernel/bpf/accounts.bpf.o)
add() { # PROGRAM [ARGUMENT]...
    commands+=(--- "$@")
}
add "$tests/unit/test_unit_abi" /t/accounts.bpf.o
add "$tests/bpf/test_bpf_laws"
add "$tests/bpf/test_bpf_processors"
add "$tests/bpf/test_bpf_causes"
add "$tests/bpf/test_bpf_compat"
add "$tests/bpf/test_bpf_registers"
add "$tests/bpf/test_bpf_edges"
add "$tests/daemon/test_daemon" 'own*'
add "$tests/unit/test_unit_stacks" /t/stack_waiter
add "$tests/unit/test_unit_stack_yama" /t/stack_waiter /t/prcb
options+=(-f "$build/src/services/daemon/prcbd" -f "$tests/unit/stack_waiter" -f "$build/src/tools/cli/prcb")
targets+=(src/services/daemon/prcbd tests/unit/stack_waiter src/tools/cli/prcb)
if [[ $arch == x86_64 ]]; then
    options+=(-f "$tests/bpf/compat_waiter")
    targets+=(tests/bpf/compat_waiter)
    add "$tests/bpf/test_bpf_lifecycle"
    add "$tests/bpf/test_bpf_storms"
    add "$tests/bpf/test_bpf_system_causes" 'CPU?quota*' # told by other members of the kernel before 6.18
    add "$tests/bpf/test_bpf_system_causes" '*since_before' # which lock is told from 6.16 on
    add "$tests/bpf/test_bpf_sample" 'a*' # areas, records across chunks, attribution
    add "$tests/nt/test_unit_nt_profiling" bpf
    add "$tests/nt/test_unit_nt_live" bpf
    add "$tests/nt/test_unit_nt_live"
else # slower: births and ends, where the order of memory accesses counts
    add "$tests/tsan/test_seqcount" # asks nothing of the kernel: on x86-64 this machine's own run says it
    add "$tests/bpf/test_bpf_lifecycle" '*meanwhile' '*registered*' 'test_end*' '*total' '*living'
    # Spans of traces in other programs, by each way in which their code gets to the variable.
    linkages=()
    for name in exported hidden fixed static static-pie linked-{gnu,desc,initial}; do
        options+=(-f "$tests/spans/publisher-$name")
        targets+=("tests/spans/publisher-$name")
        linkages+=("/t/publisher-$name")
    done
    options+=(-f "$tests/spans/publisher-loads")
    targets+=(tests/spans/publisher-loads)
    for name in gnu desc initial; do
        options+=(-f "$tests/spans/libpublisher_$name.so")
        linkages+=(/t/publisher-loads "/t/libpublisher_$name.so")
    done
    add "$tests/spans/test_linkages" "${linkages[@]}"
fi
if [[ -n ${GUEST_CLANG:-} ]]; then # each object: accounts, clients, processors, samples
    commands=()
    add "$tests/bpf/test_bpf_laws"
    add "$tests/bpf/test_bpf_processors"
    add "$tests/daemon/test_daemon" 'own*'
    add "$tests/bpf/test_bpf_sample" 'a*'
fi
# The emulated arm64 processor has counters, but only while it counts instructions, which
# is slow and stops the clock's likeness to ours: a machine of its own.
counting=()
if [[ $arch == arm64 ]]; then
    counting=("$tests/nt/test_unit_counters" --- "$tests/nt/test_unit_counter_page"
        --- "$tests/nt/test_unit_nt_config" --- "$tests/nt/test_unit_nt_profiling" bpf)
fi

if [[ ${2:-} == --list ]]; then
    printf '%s\n' "${commands[@]}" "${counting[@]}" | sed -n "s|^$tests/.*/||p"
    exit
fi

mkdir -p "$work"
if ! (fetch_kernel && fetch_busybox && if [[ $arch != x86_64 ]]; then fetch_sysroot; fi); then
    echo "kernel and libraries for $arch cannot be had from Debian's archive"
    exit 77
fi
for word in "${commands[@]}" "${counting[@]}"; do
    if [[ $word == "$build"/* ]]; then
        targets+=("${word#"$build"/}")
    fi
done
"$here/build.sh" "$arch" -j "${DEV_JOBS:-$(nproc)}" "${targets[@]}" >"$work/build.log" 2>&1 || {
    tail -n 40 "$work/build.log"
    exit 1
}
options+=(-f "$build/src/kernel/bpf/accounts.bpf.o")
if [[ ${2:-} == --build ]]; then
    exit
fi

# What programs meet there is these libraries' doing, too: they are this machine's release.
if [[ $arch != x86_64 ]]; then
    built_with
fi

# Nothing in a test of behaviour would show a barrier that is missing: the emulated
# processor orders its accesses as this machine's does.
if [[ $arch == arm64 ]]; then
    python3 "$here/exchanges.py" "$build/src/kernel/bpf/accounts.bpf.o"
    python3 "$here/exchanges.py" "$build/src/kernel/bpf/processors.bpf.o"
fi

# lend FOLDER: what guests are made of, once more.
lend() {
    local name
    mkdir -p "$1"
    for name in vmlinuz busybox sysroot; do
        if [[ -e $work/$name ]]; then
            ln -sfn "$work/$name" "$1/$name"
        fi
    done
}

# boot FOLDER OPTION... -- WORD...: the guest's tests, and a few that failed once more, in
# another boot.
boot() {
    local folder=$1 options=() name words status=0 again=() second=()
    shift
    while [[ $1 != -- ]]; do
        options+=("$1")
        shift
    done
    shift
    lend "$folder/again"
    rm -f "$folder"/{,again-,again/}testlog.json
    "$here/guest.sh" "${options[@]}" -b "$folder" "$arch" -- "$@" || status=$?
    if [[ -f $folder/testlog.json ]]; then
        mapfile -t again < <(python3 "$here/../tally.py" --again "$folder/testlog.json")
    fi
    if [[ $status != 0 ]] && ((${#again[@]})); then
        echo "again, in a boot of their own: ${again[*]}"
        for name in "${again[@]}"; do
            read -ra words <<<"${name#"$arch "}"
            second+=(--- "${words[@]}")
        done
        status=0
        "$here/guest.sh" "${options[@]}" -b "$folder/again" "$arch" -- "${second[@]}" || status=$?
        cp "$folder/again/testlog.json" "$folder/again-testlog.json"
    fi
    return "$status"
}

# Both at once: much of what tests do is to wait.
status=0
if ((${#counting[@]})); then
    lend "$work/counters"
    boot "$work/counters" -i -t 400 -- "${counting[@]}" >"$work/counters/output" 2>&1 &
fi
boot "$work" "${options[@]}" -- "${commands[@]}" || status=$?
if ((${#counting[@]})); then
    wait $! || status=$?
    cat "$work/counters/output"
    for name in testlog again-testlog; do
        if [[ -f $work/counters/$name.json ]]; then
            cat "$work/counters/$name.json" >>"$work/$name.json"
        fi
    done
fi
exit "$status"
