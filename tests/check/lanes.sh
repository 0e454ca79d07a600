# shellcheck shell=bash disable=SC2154,SC2034
# SPDX-License-Identifier: BSD-2-Clause
#
# How groups of ./dev check run beside one another, and builds before they are needed. Part of
# tests/check.sh.

# Lanes beside the first one. Their outputs follow the first one's.
lane_folders=()
lane_jobs=()
run_lane() { # PRIORITY RESULTS TITLE COMMAND [TITLE COMMAND]...
    local results=$2
    renice -n "$1" -p "$BASHPID" >/dev/null
    shift 2
    : >"$results"
    while (($#)); do
        run_group "$1" "$2"
        shift 2
    done
}

start_lane() { # PRIORITY TITLE COMMAND [TITLE COMMAND]...
    local folder priority=$1
    shift
    folder=$(mktemp -d)
    set -m # a process group of its own
    run_lane "$priority" "$folder/results" "$@" </dev/null >"$folder/output" 2>&1 &
    lane_folders+=("$folder")
    lane_jobs+=($!)
    set +m
}

finish_lanes() {
    local i
    for i in "${!lane_jobs[@]}"; do
        tail --pid "${lane_jobs[i]}" -n +1 -f "${lane_folders[i]}/output"
        group=lane
        wait "${lane_jobs[i]}" || record fail "lane $i" "stopped with exit status $?"
        cat "${lane_folders[i]}/results" >>"$results"
    done
}

stop_lanes() {
    local i
    for i in "${!lane_jobs[@]}"; do
        kill -- "-${lane_jobs[i]}" 2>/dev/null || true
        rm -rf "${lane_folders[i]}"
    done
}

# ---- builds ahead ----

builds_priority=5
# The builds of later groups are made while tests of earlier ones wait, as tests mostly do. A
# group that needs one waits for it and builds it all the same: where that was done nothing is
# left to do, and where it failed it fails again, for all to see.
# Guests' mostly waits for Debian's archive: it is made beside the others.
builds_ahead=(asan clang release fuzz) # in the order in which they are waited for
ahead_folder=
ahead_job=
start_builds() {
    ahead_folder=$(mktemp -d)
    set -m # a process group of its own
    (
        renice -n "$builds_priority" -p "$BASHPID"
        build_guests &
        for name in "${builds_ahead[@]}"; do
            "build_$name" || true
            : >"$ahead_folder/$name"
        done
        wait
    ) </dev/null >"$ahead_folder/output" 2>&1 &
    ahead_job=$!
    set +m
}

stop_builds() {
    if [[ -n $ahead_job ]]; then
        kill -- "-$ahead_job" 2>/dev/null || true
        rm -rf "$ahead_folder"
    fi
}

await_build() { # NAME
    while [[ ! -e $ahead_folder/$1 ]] && kill -0 "$ahead_job" 2>/dev/null; do
        sleep 0.2
    done
}

finish_build() { # NAME
    await_build "$1"
    "build_$1"
}
