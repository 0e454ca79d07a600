# shellcheck shell=bash disable=SC2154,SC2034
# SPDX-License-Identifier: BSD-2-Clause
#
# Results of ./dev check: running tests and noting what they gave, a group's time, the summary. Part of
# tests/check.sh.
#
# Each result is a line in $results: pass|fail|skip|unsteady TAB group TAB name TAB reason, and a
# group's seconds one more: time TAB group TAB seconds TAB seconds of a processor. A group that ends
# with an error, or without any result, counts as a failure of its own.

results=
group=
check_as=() # what tests are run by: setpriv, for an ordinary user

record() { # pass|fail|skip NAME [REASON]
    printf '%s\t%s\t%s\t%s\n' "$1" "$group" "$2" "${3:-}" >>"$results"
}

# Runs the tests that the options select, all of them whatever fails; a few that failed are
# given a second run, alone.
meson_tests() { # DIR TEST-PROCESSES OPTION...
    local dir=$here/$1 processes=$2 name=${group//[^[:alnum:]]/-} logs again
    shift 2
    logs=$dir/meson-logs
    rm -f "$logs/$name.json" "$logs/$name-again.json" # another group may be in this folder at the same time
    "${check_as[@]}" meson test -C "$dir" --no-rebuild --print-errorlogs --logbase "$name" \
        --num-processes "$processes" --timeout-multiplier 2 "$@" || true
    if [[ ! -f $logs/$name.json ]]; then
        record fail "meson test" "no test log was written"
        return
    fi
    mapfile -t again < <(python3 "$here/tests/tally.py" --again "$logs/$name.json")
    if ((${#again[@]})); then
        echo "again, alone: ${again[*]}"
        "${check_as[@]}" meson test -C "$dir" --no-rebuild --print-errorlogs --logbase "$name-again" \
            --num-processes 1 --timeout-multiplier 2 "${again[@]}" || true
    fi
    python3 "$here/tests/tally.py" "$group" "$logs/$name"{,-again}.json >>"$results"
}

# Runs a script that prints TAP: "ok 1 - name", "not ok 2 - name", "ok 3 - name # SKIP why".
tap() { # COMMAND...
    local log status=0
    log=$(mktemp)
    "$@" 2>&1 | tee "$log" || status=$?
    python3 "$here/tests/tally.py" --tap "$group" "$status" "$log" >>"$results"
    rm -f "$log"
}

run_group() { # TITLE COMMAND: its words
    local start=$EPOCHREALTIME status=0 before after seconds used busy
    used=$(mktemp)
    group=$1
    printf '\n==== %s\n' "$group"
    before=$(grep -c '' "$results" || true)
    set +e
    (
        set -e
        trap 'times >"$used"' EXIT
        # shellcheck disable=SC2086 # words
        $2
    )
    status=$?
    set -e
    after=$(grep -c '' "$results" || true)
    if [[ $status -ne 0 ]]; then
        record fail "$group" "stopped with exit status $status"
    elif [[ $after -eq $before ]]; then
        record fail "$group" "nothing was tested"
    fi
    seconds=$(awk -v a="$start" -v b="$EPOCHREALTIME" 'BEGIN {printf "%.1f", b - a}')
    # bash's times: of itself, then of its children, each user and system: 1m2.345s
    busy=$(tr ' ' '\n' <"$used" | awk -F '[ms]' '{sum += 60 * $1 + $2} END {printf "%.1f", sum}')
    rm -f "$used"
    printf -- '---- %s: %s seconds, %s of them of a processor\n' "$group" "$seconds" "$busy"
    printf 'time\t%s\t%s\t%s\n' "$group" "$seconds" "$busy" >>"$results"
}

count() { # pass|fail|skip|unsteady [GROUP]
    awk -F '\t' -v kind="$1" -v group="${2:-}" \
        '$1 == kind && (group == "" || $2 == group) {n++} END {print n + 0}' "$results"
}

summary() {
    local kind title seconds busy
    printf '\n==== summary\n%8s  %8s  %6s  %6s  %7s  %s\n' seconds computed passed failed skipped group
    while IFS=$'\t' read -r kind title seconds busy; do
        if [[ $kind == time ]]; then
            printf '%8s  %8s  %6s  %6s  %7s  %s\n' "$seconds" "$busy" "$(count pass "$title")" \
                "$(count fail "$title")" "$(count skip "$title")" "$title"
        fi
    done <"$results"
    awk -F '\t' '$1 == "skip" {printf "SKIPPED  %s: %s: %s\n", $2, $3, $4}
                 $1 == "unsteady" {printf "UNSTEADY %s: %s: %s; passed when run again\n", $2, $3, $4}
                 $1 == "fail" {printf "FAILED   %s: %s%s\n", $2, $3, $4 == "" ? "" : ": " $4}' "$results"
    printf '%s passed, %s failed, %s unsteady, %s skipped\n' \
        "$(count pass)" "$(count fail)" "$(count unsteady)" "$(count skip)"
}
