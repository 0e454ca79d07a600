# shellcheck shell=bash disable=SC2154
# SPDX-License-Identifier: BSD-2-Clause
#
# ./dev bench, attack, fuzz and pages: commands that run what was built for longer than a test.
# dev sources this.

command_bench() {
    local found=0 file name
    need "${packages_build[@]}" "${packages_test[@]}" "${packages_bench[@]}"
    # A build of its own: it is set up once the peers' libraries are there.
    configure build-bench "$(bpf_option)" -Dman=disabled -Dtests=disabled -Dexamples=false \
        --buildtype=release
    compile build-bench
    for file in "$here"/build-bench/bench/bench_*; do
        name=${file##*/bench_}
        if [[ -f $file && -x $file && (-z ${1:-} || $name == "$1") ]]; then
            echo "== bench $name"
            "$file" "${@:2}"
            found=1
        fi
    done
    if [[ $found -eq 0 ]]; then
        echo "dev bench: there is no benchmark '${1:-}'" >&2
        return 2
    fi
}

# The attack suite over and over, with more tries of what depends on luck, for as many minutes; a
# round that has begun is finished. "soak": all attackers at once, beside honest clients.
command_attack() {
    local minutes rounds=0 failed=0 soak=''
    if [[ ${1:-} == soak ]]; then
        soak=1
        shift
    fi
    minutes=${1:-10}
    if ! [[ $minutes =~ ^[0-9]+$ ]]; then
        echo "dev attack: '$minutes' is not a number of minutes" >&2
        return 2
    fi
    need "${packages_build[@]}" "${packages_test[@]}"
    build_main
    if [[ $soak ]]; then
        PRCB_SOAK_SECONDS=$((minutes * 60)) meson test -C "$here/build" --no-rebuild --verbose \
            --timeout-multiplier 0 daemon-soak
        return
    fi
    while ((rounds == 0 || SECONDS < minutes * 60)); do
        rounds=$((rounds + 1))
        PRCB_ATTACK_TIMES=${PRCB_ATTACK_TIMES:-20} meson test -C "$here/build" --no-rebuild \
            --print-errorlogs --timeout-multiplier 0 --num-processes 1 --suite attack ||
            failed=$((failed + 1))
    done
    echo "attack: $rounds rounds in $((SECONDS / 60)) minutes, $failed with something that came through"
    ((failed == 0))
}

# check has a build of its own: one that is not optimised takes a seventh of the time to make.
fuzz_dir=build-fuzz
fuzz_options=(-Doptimization=2)
build_fuzz() {
    CC=clang configure "$fuzz_dir" -Dfuzz=true -Dbpf=disabled -Dman=disabled -Dtests=disabled \
        -Dbench=false -Dexamples=false -Dwine=disabled -Dpython=disabled -Dpmda=disabled \
        -Db_sanitize=address,undefined "${fuzz_options[@]}"
    compile "$fuzz_dir" fuzzers
}

fuzz_targets() {
    find "$here/$fuzz_dir/fuzz" -maxdepth 1 -type f -executable -name 'fuzz_*' 2>/dev/null | sort
}

# fuzz_one FILE SECONDS: new inputs go to build-corpus; seeds, in the tree or made by the
# build, stay as they are.
fuzz_one() {
    local name=${1##*/} corpus folder seeds=()
    corpus=$here/build-corpus/$name
    mkdir -p "$corpus"
    for folder in "$here/fuzz/seeds/$name" "$here/$fuzz_dir/fuzz/seeds/$name"; do
        if [[ -d $folder ]]; then
            seeds+=("$folder")
        fi
    done
    (cd "$here/$fuzz_dir" && "$1" -max_total_time="$2" -timeout=10 -print_final_stats=1 \
        -verbosity=0 "$corpus" "${seeds[@]}")
}

command_fuzz() {
    local file found=0
    need "${packages_build[@]}" "${packages_fuzz[@]}"
    build_fuzz
    for file in $(fuzz_targets); do
        if [[ -z ${1:-} || ${file##*/fuzz_} == "$1" ]]; then
            echo "== fuzz ${file##*/fuzz_}, ${2:-60} seconds"
            fuzz_one "$file" "${2:-60}"
            found=1
        fi
    done
    if [[ $found -eq 0 ]]; then
        echo "dev fuzz: there is no target '${1:-}'" >&2
        return 2
    fi
}

# pages [SCENE]...: makes the outputs in docs/*.md anew, on this machine; see tools/pages/pages.py.
command_pages() {
    need "${packages_build[@]}" "${packages_pages[@]}"
    build_main programs
    as_root python3 "$here/tools/pages/pages.py" "$here/build/src/tools/cli/prcb" "$@"
}
