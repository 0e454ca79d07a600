# shellcheck shell=bash disable=SC2154
# SPDX-License-Identifier: BSD-2-Clause
#
# ./dev check: its groups, how they run beside one another, and the tally. Part of dev, which sources
# it and has the packages and the builds (here, jobs, packages_*, need, configure, compile, build_*).
#
# Groups run in lanes, one beside the other, for most tests wait more than they compute. Three have the
# tests that compare times and counts with the kernel's, one test at a time in each: those of eBPF, with gcc
# and then with sanitizers; those of the command line; and, behind what reads files, those of the command line
# with sanitizers. The others have a lower priority, and so have the builds: what computes, what an ordinary
# user sees, and what mostly waits, for programs of others; guests use what all leave.
# A failing group does not stop the next. Each result is a line in
# $results: pass|fail|skip|unsteady TAB group TAB name TAB reason, and a group's seconds one more:
# time TAB group TAB seconds TAB seconds of a processor. A group that ends with an error, or without any result,
# counts as a failure of its own.

results=
group=
low_priority=10 # of lanes that may wait; guests' is 15
builds_priority=5

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

# The rest: everything but the eBPF and command-line tests, which want the machine
# for themselves, the thread-sanitizer tests, which have a build of their own, and tests that ./dev attack runs
# alone and others contain.
quick=(--no-suite bpf --no-suite cli --no-suite wine --no-suite python --no-suite page --no-suite pmda
    --no-suite tsan --no-suite abi --no-suite attack)
# Documents, the catalog's facts, the headers and what the kernel makes of a wait do not change with
# a sanitizer: once is enough. Files are read by an ordinary user as by root, and without eBPF.
sanitizers=("${quick[@]}" --no-suite docs --no-suite facts)
ordinary=(--no-suite wine --no-suite python --no-suite page --no-suite pmda --no-suite docs --no-suite facts
    --no-suite tsan --no-suite abi --no-suite layout --no-suite dump --no-suite files
    --no-suite attack)
check_as=()

group_build() {
    build_main
    record pass compile
}
# Each compiles first: nothing where the build succeeded, an end where it did not.
group_quick() {
    compile build
    meson_tests build "$jobs" "${quick[@]}"
}
group_abi() {
    compile build
    meson_tests build 1 --suite abi
}
group_bpf() {
    compile build
    meson_tests build 1 --suite bpf
}
group_cli() {
    compile build
    meson_tests build 1 --suite cli --no-suite files
}
group_files() {
    compile build
    meson_tests build 1 --suite files --no-suite unit # which group_quick has
}
group_python() {
    compile build
    meson_tests build 1 --suite python
}
wine_here=
group_pmda() {
    compile build
    meson_tests build 1 --suite pmda
}

group_page() { # without browsers it skips, and says so
    compile build
    meson_tests build 1 --suite page
}
group_wine() {
    compile build
    if [[ -n $wine_here ]]; then
        meson_tests build 1 --suite wine
    else
        record skip prcb-wine "the packages cannot be installed: ${packages_wine[*]}"
    fi
}

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

# The eBPF objects of build/ for the builds whose compiler is another: clang makes them in each.
bpf_objects() {
    echo "-Dbpf_objects=$([[ $(bpf_option) != *enabled ]] || echo "$here/build/src/kernel/bpf")"
}

# For its warnings, which do not change with the optimiser, and its code: programs that other groups run
# twice are left to them.
build_clang() {
    CC=clang configure build-clang "$(bpf_option)" "$(bpf_objects)" -Dwerror=true -Dman=disabled -Dbench=true \
        -Dwine=disabled -Dfacts=false -Doptimization=0
    compile build-clang
}

group_clang() {
    finish_build clang
    meson_tests build-clang "$jobs" --suite unit --no-suite facts
}

# As the README has it: a release build, whose optimiser sees warnings of its own. What is installed is
# tested, by scripts.
build_release() {
    configure build-release "$(bpf_option)" "$(bpf_objects)" -Dwerror=true -Dman=enabled -Dtests=disabled \
        -Dbench=false --buildtype=release --prefix="$here/build-release/prefix"
    compile build-release
}

group_install() {
    finish_build release
    rm -rf "$here/build-release/prefix"
    meson install -C "$here/build-release" --no-rebuild --quiet
    tap "$here/tests/install/install.sh" "$here/build-release/prefix"
    tap python3 "$here/tests/install/readme.py" "$here" "$here/build-release/prefix"
    tap "$here/tests/install/wheel.sh" "$(bpf_objects)"
}

# Not optimised: a third of the time to build, none of it in the tests, and nothing is optimised away
# that a sanitizer would see. What is undefined ends in a trap, which the address sanitizer reports with file and
# line: the words for each would be 200000 relocations at each start of prcb.
build_asan() {
    configure build-asan "$(bpf_option)" "$(bpf_objects)" -Dwerror=true -Dman=disabled -Dbench=false \
        -Dexamples=false -Dpmda=disabled -Dfacts=false -Doptimization=0 -Db_sanitize=address,undefined \
        -Dc_args=-fsanitize-undefined-trap-on-error
    compile build-asan
}

sanitized() { # meson_tests' ARGUMENTS...
    # An exit status that no program of ours has: 1 would be what many tests expect.
    export ASAN_OPTIONS=detect_leaks=1:halt_on_error=1:abort_on_error=0:handle_sigill=1:exitcode=99
    finish_build asan
    meson_tests build-asan "$@"
}
group_sanitizers_quick() {
    sanitized "$jobs" "${sanitizers[@]}"
}
group_sanitizers_bpf() {
    sanitized 1 --suite bpf --no-suite facts --no-suite kernel
}
group_sanitizers_cli() {
    sanitized 1 --suite cli --no-suite facts
}

# gcc warns that its thread sanitizer does not model fences. What is shared is read and
# written by atomic accesses throughout, which it does model.
group_threads() {
    configure build-tsan -Dwerror=true -Dc_args=-Wno-tsan -Dbpf=disabled -Dman=disabled -Dbench=false -Dexamples=false \
        -Db_sanitize=thread
    compile build-tsan tests/tsan/test_seqcount
    TSAN_OPTIONS=halt_on_error=1 meson_tests build-tsan 1 --suite tsan
}

# As an ordinary user: what root alone can do must not creep into these tests.
group_nobpf() {
    if [[ $EUID -eq 0 ]]; then
        check_as=(setpriv --reuid=nobody --regid=nogroup --clear-groups env HOME=/tmp
            PATH=/usr/local/bin:/usr/bin:/bin)
        if ! "${check_as[@]}" test -r "$here/meson.build"; then
            record skip "as nobody" "$here is not readable by nobody: run as root instead"
            check_as=()
        fi
        mkdir -p "$here/build-nobpf"
        chown -R nobody:nogroup "$here/build-nobpf"
    fi
    "${check_as[@]}" "$here/dev" build-nobpf
    meson_tests build-nobpf "$jobs" "${ordinary[@]}"
}

# Internal: the part of group_nobpf that runs as nobody. Not optimised, as with sanitizers.
command_build_nobpf() {
    configure build-nobpf -Dwerror=true -Dbpf=disabled -Dman=disabled -Dbench=false -Dexamples=false \
        -Dwine=disabled -Dfacts=false -Doptimization=0
    compile build-nobpf
}

group_style() {
    cd "$here"
    tap tests/style/style.sh
    tap tests/style/headers.sh
    tap tests/style/bits32.py
}

fuzz_briefly() { # FILE
    local log
    log=$(mktemp)
    if fuzz_one "$1" 1 >"$log" 2>&1; then
        record pass "${1##*/}"
        echo "${1##*/}: $(grep -c . <(find "$here/build-corpus/${1##*/}" -type f)) inputs," \
            "$(awk '/number_of_executed_units/ {print $2}' "$log") runs"
    else
        record fail "${1##*/}" "$(grep -m1 -E 'ERROR|SUMMARY|runtime error' "$log" || true)"
        tail -n 40 "$log"
    fi
    rm -f "$log"
}

group_fuzz() {
    local file running=0
    finish_build fuzz
    for file in $(fuzz_targets); do
        if ((running == jobs)); then
            wait -n
            running=$((running - 1))
        fi
        fuzz_briefly "$file" &
        running=$((running + 1))
    done
    wait
}

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

run_group() { # TITLE FUNCTION
    local start=$EPOCHREALTIME status=0 before after seconds used busy
    used=$(mktemp)
    group=$1
    printf '\n==== %s\n' "$group"
    before=$(grep -c '' "$results" || true)
    set +e
    (
        set -e
        trap 'times >"$used"' EXIT
        "$2"
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

# Lanes beside the first one. Their outputs follow the first one's.
lane_folders=()
lane_jobs=()
run_lane() { # PRIORITY RESULTS TITLE FUNCTION [TITLE FUNCTION]...
    local results=$2
    renice -n "$1" -p "$BASHPID" >/dev/null
    shift 2
    : >"$results"
    while (($#)); do
        run_group "$1" "$2"
        shift 2
    done
}

start_lane() { # PRIORITY TITLE FUNCTION [TITLE FUNCTION]...
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

# Tests become nobody, who may not enter root's home: there the whole check runs in a second
# mount of the tree, where everybody may. What cannot be mounted is checked where it is, and tests that
# nobody cannot reach say so.
check_where_all_may() {
    local place shared=${PRCB_SHARED:-$here/../shared}
    if [[ $EUID -ne 0 || ${DEV_REACHABLE:-} ]] ||
        setpriv --reuid=nobody --regid=nogroup --clear-groups test -r "$here/meson.build"; then
        return
    fi
    place=$(mktemp -d /tmp/prcb-check.XXXXXX)
    chmod 755 "$place"
    echo "dev: nobody may not enter $here: checking in $place, another mount of it" >&2
    # shellcheck disable=SC2016
    DEV_REACHABLE=$place PRCB_SHARED=$shared unshare --mount --propagation unchanged bash -c \
        'mount --bind --make-private "$1" "$2" && cd "$2" && exec "$2/dev" check' - "$here" "$place" || {
        local status=$?
        rmdir "$place" 2>/dev/null || true
        exit "$status"
    }
    rmdir "$place" 2>/dev/null || true
    exit 0
}

command_check() {
    check_where_all_may
    # shellcheck disable=SC2034 # dev's, for build_fuzz
    fuzz_dir=build-fuzz-brief fuzz_options=(-Doptimization=0 "-Dfuzz_prcb=$here/build/src/tools/cli/prcb" -Dc_link_args=-fuse-ld=lld)
    need "${packages_build[@]}" "${packages_test[@]}" "${packages_fuzz[@]}"
    if [[ $(uname -m) == x86_64 ]] && need "${packages_guest[@]}"; then
        guests_here=yes
    fi
    if [[ $(uname -m) == x86_64 ]] && need "${packages_wine[@]}"; then
        wine_here=yes
    fi
    need "${packages_browser[@]}" || true
    need_pcp
    results=$(mktemp)
    trap 'set +e; stop_builds; stop_lanes; stop_guests; rm -f "$results"' EXIT
    run_group "gcc build" group_build
    start_builds
    start_lane 0 "command line tests" group_cli
    start_lane 0 "command line tests: files" group_files \
        "sanitizers: command line" group_sanitizers_cli
    start_lane "$low_priority" "unit, layout and document tests" group_quick \
        "ABI of the libraries" group_abi \
        "style and headers" group_style \
        "sanitizers: unit, layout" group_sanitizers_quick \
        "clang build, unit tests" group_clang \
        "installed copy, examples" group_install \
        "thread sanitizer" group_threads \
        "fuzz, briefly" group_fuzz
    start_lane "$low_priority" "no eBPF, ordinary user" group_nobpf
    start_lane "$low_priority" "Python" group_python \
        "Performance Co-Pilot" group_pmda \
        "Windows programs under Wine" group_wine \
        "pages in browsers" group_page
    run_group "eBPF tests" group_bpf
    start_guests
    run_group "sanitizers: eBPF" group_sanitizers_bpf
    finish_lanes
    run_group "guests: the oldest and the newest Linux, x86-64 and arm64" group_guests
    summary
    [[ $(count fail) -eq 0 ]]
}
