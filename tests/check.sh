# shellcheck shell=bash disable=SC2154
# SPDX-License-Identifier: BSD-2-Clause
#
# ./dev check: its groups, each a build or a selection of tests, and their order. Part of dev, which
# sources it and has the packages and the builds (here, jobs, packages_*, need, configure, compile,
# build_*). How a group runs is in tests/check/.
#
# Groups run in lanes, one beside the other, for most tests wait more than they compute. Four have
# the tests that compare times and counts with the kernel's, one test at a time in each: those of
# eBPF, with gcc and then with sanitizers; those of the command line; the cases, and what talks over
# sockets; and, behind what reads files, those of the command line with sanitizers. The others have a
# lower priority, and so have the builds: what computes, what an ordinary user sees, and what mostly
# waits, for programs of others; guests use what all leave. A failing group does not stop the next.
# The whole takes as long as its longest lane, or as all that is computed, divided by the processors:
# docs/hacking/28-test.md says what a test may take of either.

for part in results lanes guests; do
    # shellcheck source=/dev/null
    source "$here/tests/check/$part.sh"
done

low_priority=10 # of lanes that may wait; guests' is 15

# The rest: everything but the eBPF and command-line tests, which want the machine
# for themselves, the thread-sanitizer tests, which have a build of their own, and tests that ./dev attack runs
# alone and others contain.
quick=(--no-suite bpf --no-suite cli --no-suite cases --no-suite peers --no-suite wine --no-suite python --no-suite page --no-suite pmda
    --no-suite postgresql --no-suite tsan --no-suite abi --no-suite attack)
# Documents, the catalog's facts, the headers and what the kernel makes of a wait do not change with
# a sanitizer: once is enough. Files are read by an ordinary user as by root, and without eBPF.
sanitizers=("${quick[@]}" --no-suite docs --no-suite facts)
ordinary=(--no-suite wine --no-suite python --no-suite page --no-suite pmda --no-suite postgresql --no-suite docs --no-suite facts
    --no-suite tsan --no-suite abi --no-suite layout --no-suite dump --no-suite files
    --no-suite attack)

group_build() {
    build_main
    record pass compile
}
# Each compiles first: nothing where the build succeeded, an end where it did not.
group_quick() {
    compile build
    meson_tests build "$jobs" "${quick[@]}"
}
suite() { # SUITE [OPTION]...: one test at a time
    compile build
    meson_tests build 1 --suite "$@"
}
wine_here=
group_wine() {
    compile build
    if [[ -n $wine_here ]]; then
        meson_tests build 1 --suite wine
    else
        record skip prcb-wine "the packages cannot be installed: ${packages_wine[*]}"
    fi
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

# Each half of the tree alone: it compiles nothing of the other (option windows).
build_halves() {
    local half
    for half in only disabled; do
        configure "build-half-$half" "$(bpf_option)" "$(bpf_objects)" -Dwerror=true -Dwindows="$half" \
            -Dman=disabled -Dwine=disabled -Doptimization=0
        compile "build-half-$half"
    done
}
half_is_alone() { # HALF FOLDERS-OF-THE-OTHER...: and its prcb runs
    local dir=$here/build-half-$1 folder program=prcb
    if [[ $1 == only ]]; then program+=-windows; fi
    shift
    "$dir/src/tools/cli/$program" --help >/dev/null || return 1
    for folder; do
        if compgen -G "$dir/src/$folder" >/dev/null; then return 1; fi
    done
}
group_halves() {
    build_halves
    if half_is_alone only analysis recording services tools/top reports/recording; then
        record pass "windows alone"
    else
        record fail "windows alone" "it compiles what is the profiler's"
    fi
    if half_is_alone disabled windows nt/compat nt/power nt/wine; then
        record pass "profiler alone"
    else
        record fail "profiler alone" "it compiles what is Windows'"
    fi
}

group_style() {
    cd "$here" || return
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
    # shellcheck disable=SC2034 # of tests/check/guests.sh
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
    start_lane 0 "command line tests" "suite cli --no-suite files"
    start_lane 0 "command line tests: files" "suite files --no-suite unit" \
        "sanitizers: command line" "sanitized 1 --suite cli --suite peers --no-suite facts"
    start_lane 0 "cases whose truth is known" "suite cases" \
        "exporter and client" "suite peers"
    start_lane "$low_priority" "unit, layout and document tests" group_quick \
        "ABI of the libraries" "suite abi" \
        "style and headers" group_style \
        "sanitizers: unit, layout" "sanitized $jobs ${sanitizers[*]}" \
        "clang build, unit tests" group_clang \
        "installed copy, examples" group_install \
        "thread sanitizer" group_threads \
        "halves of the tree" group_halves \
        "fuzz, briefly" group_fuzz
    start_lane "$low_priority" "no eBPF, ordinary user" group_nobpf
    start_lane "$low_priority" "Python" "suite python" \
        "Performance Co-Pilot" "suite pmda" \
        "PostgreSQL" "suite postgresql" \
        "Windows programs under Wine" group_wine \
        "pages in browsers" "suite page"
    run_group "eBPF tests" "suite bpf"
    start_guests
    run_group "sanitizers: eBPF" "sanitized 1 --suite bpf --no-suite facts --no-suite kernel"
    finish_lanes
    run_group "guests: the oldest and the newest Linux, x86-64 and arm64" group_guests
    summary
    [[ $(count fail) -eq 0 ]]
}
