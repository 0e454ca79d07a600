# shellcheck shell=bash disable=SC2154
# SPDX-License-Identifier: BSD-2-Clause
#
# ./dev guest and guests: other kernels and processors, emulated. dev sources this.

# All kernels of tests/guest/kernels.py, one after the other: an hour and more.
command_guests() {
    local kernel folder status=0 names=("$@") known
    need "${packages_build[@]}" "${packages_test[@]}" "${packages_guest[@]}"
    mkdir -p "$here/build-guest"
    # the newest is one of the others, Debian 11's has the perf tier alone
    mapfile -t known < <(python3 "$here/tests/guest/kernels.py" "$here/build-guest/apt-x86_64" x86_64 |
        sed 's/\t.*//; /^newest$/d; /^debian11$/d')
    ((${#names[@]})) || names=("${known[@]}")
    for kernel in "${names[@]}"; do
        if [[ " ${known[*]} " != *" $kernel "* ]]; then
            echo "dev guests: the archive has no kernel '$kernel', only: ${known[*]}" >&2
            return 2
        fi
    done
    build_main
    for kernel in "${names[@]}"; do
        # Its objects differ in what a verifier sees: one old kernel and one new.
        if [[ $kernel == 6.1 || $kernel == 6.12 ]] && command -v clang-19 >/dev/null; then
            echo "==== $kernel, eBPF objects by clang-19"
            GUEST_CLANG=clang-19 GUEST_KERNEL=$kernel GUEST_SECONDS=900 GUEST_BOOTING=600 \
                "$here/tests/guest/check.sh" x86_64 || status=1
            folder=$here/build-guest/x86_64-$kernel-clang-19
            python3 "$here/tests/guest/table.py" "$here/docs/kernels.md" "$kernel, clang 19" "$folder" || status=1
        fi
        echo "==== $kernel"
        folder=$here/build-guest/x86_64-$kernel
        rm -f "$folder"/{vmlinuz,testlog.json,again-testlog.json} # there may be a newer kernel
        GUEST_KERNEL=$kernel GUEST_SECONDS=1500 GUEST_BOOTING=600 \
            "$here/tests/guest/check.sh" x86_64 || status=1
        python3 "$here/tests/guest/table.py" "$here/docs/kernels.md" "$kernel" "$folder" ||
            status=1
    done
    return "$status"
}

# guest [OPTION]... ARCH -- COMMAND...: see tests/guest/guest.sh.
command_guest() {
    local word arch=
    for word in "$@"; do
        case $word in
        x86_64 | arm64) arch=$word && break ;;
        --) break ;;
        esac
    done
    if [[ -n $arch ]]; then
        need "${packages_build[@]}" "${packages_test[@]}" "${packages_guest[@]}"
        "$here/tests/guest/build.sh" "$arch" -j "$jobs" >&2
    fi
    "$here/tests/guest/guest.sh" "$@"
}
