#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# The installed copy under PREFIX ($1), as a user meets it: files, pkg-config, the
# examples built and run against it, the program of docs/measure.md. Prints TAP.
# shellcheck disable=SC2317 # the functions are called by name, through check
set -u
source_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
prefix=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# shellcheck source=tests/tap.sh
source "$source_dir/tests/tap.sh"

pc_file=$(find "$prefix" -name libprcb.pc)
PKG_CONFIG_PATH=$(dirname "$pc_file")
export PKG_CONFIG_PATH
unset LD_LIBRARY_PATH
read -ra flags < <(pkg-config --cflags --libs libprcb)
libdir=$(pkg-config --variable=libdir libprcb)
strict=(-O1 -Wall -Wextra -Werror -Wno-unused-parameter)

present() {
    local file status=0
    for file in "$@"; do
        if [[ ! -e $prefix/$file ]]; then
            echo "missing: $file"
            status=1
        fi
    done
    return "$status"
}

# No symbol but prcb_*, and the one whose name OpenTelemetry gives, leaves the library.
only_own_symbols() {
    ! nm -D --defined-only "$libdir"/libprcb{,-layout}.so | awk '$2 ~ /[TDBRVW]/ {print $3}' |
        grep -Ev '^(prcb_|otel_thread_ctx_v1@)'
}

public_headers_installed() {
    local header status=0
    for header in "$source_dir"/include/prcb/*.h; do
        cmp "$header" "$prefix/include/prcb/${header##*/}" || status=1
    done
    return "$status"
}

build() { # COMPILER SOURCE PROGRAM
    "$1" "${strict[@]}" "$2" "${flags[@]}" -pthread -Wl,-rpath,"$libdir" -o "$work/$3"
}

run_in_work() {
    (cd "$work" && timeout 120 "$@")
}

says() { # PATTERN COMMAND...
    local pattern=$1 out
    shift
    out=$(run_in_work "$@" 2>&1)
    printf '%s\n' "$out"
    grep -qE "$pattern" <<<"$out"
}

# A reader of dumps has nothing to do with eBPF or counters, and does not load their libraries.
build_dump_reader() {
    local words
    read -ra words < <(pkg-config --cflags --libs libprcb-layout)
    cc "${strict[@]}" "$source_dir/examples/dump.c" "${words[@]}" -Wl,-rpath,"$libdir" -o "$work/dump"
}

loads_libc_only() {
    local loaded
    loaded=$(ldd "$1" | awk '{print $1}' | grep -vE '^(linux-vdso|libprcb-layout|libc\.so|/lib.*/ld-linux)')
    printf '%s' "$loaded"
    [[ -z $loaded ]]
}

reads_a_dump() {
    PRCB=$prefix/bin/prcb python3 "$source_dir/tests/dump/mkdump.py" "$source_dir/tests/dump/session.dump" "$work/session.dmp" &&
        says '^processor 0.*InterruptCount' ./dump session.dmp
}

# The first ```c block of docs/measure.md is a whole program.
page_program() {
    awk '/^```c$/ {on = 1; next} /^```$/ {if (on) exit} on' "$source_dir/docs/measure.md" >"$work/page.c"
    [[ -s $work/page.c ]] && build cc "$work/page.c" page
}

cat >"$work/plus.cc" <<'CODE'
#include <prcb/prcb.h>
#include <prcb/layout.h>
#include <cstring>
int main() { return std::strlen(prcb_version()) && prcb_cause_info(PRCB_CAUSE_SLEEP) ? 0 : 1; }
CODE

# As lintian asks: only what a page's first line names is run, tbl.
pages_are_set() { # PAGE...
    local page said=
    for page in "$@"; do
        said+=$(LC_ALL=C.UTF-8 MANROFFSEQ='' MANWIDTH=80 man --warnings -E UTF-8 -l -Tutf8 -Z "$prefix/$page" \
            2>&1 >/dev/null)
    done
    echo "$said"
    [[ -z $said ]]
}

check "files" present bin/prcb include/prcb/prcb.h include/prcb/causes.h include/prcb/layout.h \
    share/bash-completion/completions/prcb share/doc/prcb/examples/request.c
check "public headers are all installed, unchanged" public_headers_installed
pages=()
for page in "$source_dir"/man/*.scd; do
    page=${page##*/}
    page=${page%.scd}
    if [[ $page == prcb-wine.1 && ! -e $prefix/bin/prcb-wine ]]; then
        continue # built where Wine's tools are
    fi
    pages+=("share/man/man${page##*.}/$page")
done
check "manual pages" present "${pages[@]}"
check "groff has nothing to say of them" pages_are_set "${pages[@]}"
check "pkg-config knows the version that prcb says" \
    says "^prcb $(pkg-config --modversion libprcb)\$" "$prefix/bin/prcb" --version
check "prcb finds its library" says '^usage: prcb' "$prefix/bin/prcb" --help
check "prcb stat runs" says 'nanosleep|tier' "$prefix/bin/prcb" stat -- sleep 0.1
check "exported symbols" only_own_symbols
for compiler in gcc clang; do
    for example in request threads; do
        check "examples/$example.c builds with $compiler" \
            build $compiler "$source_dir/examples/$example.c" "$example-$compiler"
    done
done
check "a C++ program builds" build g++ "$work/plus.cc" plus
check "a C++ program runs" run_in_work "$work/plus"
check "examples/raii.cc builds" build g++ "$source_dir/examples/raii.cc" raii
check "raii runs" says '^ran [0-9.]+ ms, slept [0-9.]+ ms, [1-9][0-9]* switches' "$work/raii"
if pkg-config --exists benchmark; then
    read -ra words < <(pkg-config --cflags --libs libprcb benchmark)
    check "examples/google_benchmark.cc builds" g++ -std=c++17 "$source_dir/examples/google_benchmark.cc" \
        "${words[@]}" -pthread -Wl,-rpath,"$libdir" -o "$work/google_benchmark"
    check "google_benchmark runs" says 'sleep_ns=|ready_ns=' "$work/google_benchmark"
fi
check "request runs" says 'requests, tier (bpf|perf)' "$work/request-gcc" 60
check "threads runs" says '^sleeper' "$work/threads-gcc"
check "a reader of dumps builds" build_dump_reader
check "a reader of dumps loads libc only" loads_libc_only "$work/dump"
check "a reader of dumps runs" reads_a_dump
check "the program of docs/measure.md builds" page_program
check "the program of docs/measure.md runs" run_in_work "$work/page"
# Programs written for Windows, unchanged.
ported() { # COMPILER SOURCE PROGRAM
    local words
    read -ra words < <(pkg-config --cflags --libs prcb-nt)
    "$1" -Wall -Wno-cast-function-type "$source_dir/tests/nt/$2" "${words[@]}" -o "$work/$3"
}
check "other spellings of headers" present include/prcb/compat/{Windows,PowrProf,Winternl}.h
check "a Windows program builds" ported gcc ported.c ported
check "a Windows program in C++ builds" ported g++ ported.cpp ported-cpp
if "$work/ported" >/dev/null 2>&1 || [[ $("$work/ported" 2>&1) != *0xc00000bb* ]]; then
    check "a Windows program runs" says '^ContextSwitchCount [1-9]' "$work/ported"
    check "a Windows program in C++ runs" says '^done' "$work/ported-cpp"
else
    skip "a Windows program runs" "events may not be counted here"
fi
exit "$failed"
