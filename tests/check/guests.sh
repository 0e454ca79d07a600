# shellcheck shell=bash disable=SC2154,SC2034
# SPDX-License-Identifier: BSD-2-Clause
#
# Guests of ./dev check: tests on other kernels and another processor. Part of tests/check.sh.

# On another kernel and another processor, emulated. They take one processor each and
# much of their time is waiting, so they run beside groups that do not mind how long they take.
guests=(x86_64 x86_64-newest arm64) # architecture, and one of tests/guest/kernels.py's kernels
# in_guest ARCH[-KERNEL] COMMAND...
in_guest() {
    local kernel=
    if [[ $1 == *-* ]]; then kernel=${1#*-}; fi
    shift
    GUEST_KERNEL=$kernel "$@"
}
guests_here=
build_guests() {
    local guest
    for guest in ${guests_here:+"${guests[@]}"}; do
        # What fails here fails again in check.sh, and says why.
        in_guest "$guest" "$here/tests/guest/check.sh" "${guest%%-*}" --build || true
        : >"$ahead_folder/guest-$guest"
    done
}
guest_jobs=()
guest_limit=1500 # seconds, at a low priority; a test or boot that hangs ends by limits of its own, in check.sh
start_guests() {
    local guest
    if [[ -z $guests_here ]]; then
        return
    fi
    for guest in "${guests[@]}"; do
        mkdir -p "$here/build-guest/$guest"
        rm -f "$here/build-guest/$guest"/{testlog.json,again-testlog.json,status}
        # What the build left to do, check.sh does. The lane goes on meanwhile. A session of its own, for
        # stop_guests: where the kernel shares processors among sessions first (sched(7), autogroup),
        # the priority is the session's.
        # shellcheck disable=SC2016
        (
            await_build "guest-$guest"
            in_guest "$guest" exec setsid nice -n 15 timeout -k 10 "$guest_limit" \
                bash -c '(echo 10 >/proc/self/autogroup) 2>/dev/null
                    "$1/tests/guest/check.sh" "${2%%-*}"; echo $? >"$1/build-guest/$2/status"' \
                - "$here" "$guest"
        ) </dev/null >"$here/build-guest/$guest/output" 2>&1 &
        guest_jobs+=($!)
    done
}

stop_guests() {
    local job
    for job in "${guest_jobs[@]}"; do
        kill -- "-$job" 2>/dev/null || kill "$job" 2>/dev/null || true
    done
}

group_guests() {
    local guest status job folder fails
    if [[ $(uname -m) != x86_64 ]]; then
        record skip guests "they are built on x86-64 machines only, this is $(uname -m)"
        return
    fi
    if [[ -z $guests_here ]]; then
        record skip guests "the packages cannot be installed: ${packages_guest[*]}"
        return
    fi
    for job in "${guest_jobs[@]}"; do
        tail --pid "$job" -f /dev/null
    done
    for guest in "${guests[@]}"; do
        folder=$here/build-guest/$guest
        cat "$folder/output"
        status=$(cat "$folder/status" 2>/dev/null || echo none)
        fails=$(count fail)
        if [[ $status == 77 ]]; then
            record skip "$guest guest" "its kernel and libraries cannot be had from Debian's archive"
            continue
        fi
        if [[ -f $folder/testlog.json ]]; then
            python3 "$here/tests/tally.py" "$group" "$folder"/{,again-}testlog.json >>"$results"
        fi
        if [[ $status == none ]]; then
            record fail "$guest guest" "did not end within $guest_limit seconds"
        elif [[ $status != 0 && $(count fail) == "$fails" ]]; then
            record fail "$guest guest" "exit status $status"
        fi
    done
}
