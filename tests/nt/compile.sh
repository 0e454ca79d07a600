#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# NT's layouts asserted by both compilers, as C and C++, with 64 and 32 bits, from
# both headers and from both together; then programs written for Windows: compiled
# unchanged with what pkg-config says of prcb-nt, and run. Prints TAP.
#
#   compile.sh SOURCE-DIR BUILD-DIR
# shellcheck disable=SC2317 # nothing_but is called by name
set -u
source=$1 build=$2
here=$source/tests/nt
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# shellcheck source=tests/tap.sh
source "$source/tests/tap.sh"

declare -A compiles # whether a compiler can, with these options
# asserts NAME LANGUAGE COMPILER... < SOURCE
asserts() {
    local name=$1 language=$2 out status text
    shift 2
    text=$(cat)
    if [[ ! ${compiles["$*"]:-} ]]; then
        compiles["$*"]=$(echo '#include <string.h>' | "$@" -x "$language" -fsyntax-only - 2>/dev/null && echo yes || echo no)
    fi
    if [[ ${compiles["$*"]} == no ]]; then
        skip "$name" "no $*: install gcc-12-multilib"
        return
    fi
    out=$(printf '%s\n' "$text" | "$@" -x "$language" -fsyntax-only -Wall -Wextra -Werror \
        -Wpedantic -I"$source/include" -I"$source/include/compat" -I"$build/src/nt/compat" \
        -I"$here" - 2>&1)
    status=$?
    report $status "$name" "$out"
}

declare -A heads=(
    [prcb/nt.h]='#include <prcb/nt.h>'
    [windows.h]='#include <windows.h>'
    [winternl.h]='#include <Windows.h>
#include <Winternl.h>
#include <PowrProf.h>'
    [windows.h and prcb/nt.h]='#include <windows.h>
#include <prcb/nt.h>'
    [prcb/nt.h and windows.h]='#include <prcb/nt.h>
#include <windows.h>')
triplet=$(gcc -print-multiarch 2>/dev/null)
wide=(-I"/usr/include/$triplet")
if [[ $(uname -m) == x86_64 ]]; then bits=(-m64 -m32); else bits=(''); fi
for head in "${!heads[@]}"; do
    for bit in "${bits[@]}"; do
        for pair in 'gcc c c11' 'clang c c11' 'g++ c++ c++11' 'clang++ c++ c++11'; do
            read -r compiler language standard <<<"$pair"
            asserts "layouts of $head, $compiler $bit" "$language" "$compiler" ${bit:+$bit} \
                -std="$standard" "${wide[@]}" <<<"${heads[$head]}"$'\n#include "layouts.h"'
        done
    done
done

# prcb/nt.h beside the windows.h of those who have one of their own, before it and after it.
winegcc='winegcc-stable'
command -v $winegcc >/dev/null || winegcc='winegcc'
foreign() { # NAME COMPILER LANGUAGE
    local name="prcb/nt.h $1, $2 $3" out
    if ! command -v "$2" >/dev/null; then
        skip "$name" "no $2"
        return
    fi
    # Debian has the C++ half of MinGW in a package of its own.
    if ! "$2" -x "$3" -c -o "$work/foreign.o" - </dev/null >/dev/null 2>&1; then
        skip "$name" "$2 compiles no $3 here"
        return
    fi
    out=$("$2" -x "$3" -c -o "$work/foreign.o" -Wall -Wextra -Werror -I"$source/include" - 2>&1)
    report $? "$name" "$out"
}
sizes='
int sizes[sizeof(PERFORMANCE_DATA) == 0x120 && sizeof(HARDWARE_COUNTER) == 0x10 &&
          sizeof(SYSTEM_PROCESSOR_PERFORMANCE_INFORMATION) == 0x30 &&
          sizeof(PROCESSOR_POWER_INFORMATION) == 0x18 && sizeof(GROUP_AFFINITY) == 4 + 3 * 4 -
          (sizeof(void *) == 4) * 4 ? 1 : -1];'
for compiler in x86_64-w64-mingw32-gcc i686-w64-mingw32-gcc $winegcc; do
    for language in c c++; do
        foreign 'before windows.h' "$compiler" "$language" <<<"
#include <prcb/nt.h>
#include <windows.h>
#include <winternl.h>$sizes"
        foreign 'after windows.h' "$compiler" "$language" <<<"
#include <windows.h>
#include <winternl.h>
#include <prcb/nt.h>$sizes"
    done
done

# Prototypes are those of the version that a program is for; the newest unless it says.
version() { # NAME EXPECTED-STATUS SOURCE
    local out status
    out=$(printf '%s\n' "$3" | gcc -x c -std=c11 -fsyntax-only -Werror -I"$source/include" \
        -I"$source/include/compat" - 2>&1)
    status=$?
    [[ $status -eq $2 ]]
    report $? "$1" "$out"
}
profiling='#include <windows.h>
void *call = (void *)EnableThreadProfiling;'
version 'a program for no version in particular has all calls' 0 "$profiling
int newest[_WIN32_WINNT == 0x0A00 && WINVER == 0x0A00 ? 1 : -1];"
version 'one for Windows 7 has thread profiling' 0 "#define _WIN32_WINNT 0x0601
$profiling"
version 'one for Vista has not' 1 "#define _WIN32_WINNT 0x0600
$profiling"
version 'but has cycle times' 0 '#define _WIN32_WINNT 0x0600
#include <windows.h>
void *calls[] = {(void *)QueryThreadCycleTime, (void *)GetTickCount64};'
version 'one for Windows XP has not' 1 '#define _WIN32_WINNT 0x0501
#include <windows.h>
void *calls[] = {(void *)QueryThreadCycleTime};'
version 'members are LARGE_INTEGER, with either header' 0 '#include <windows.h>
#include <prcb/nt.h>
long long get(SYSTEM_PROCESSOR_PERFORMANCE_INFORMATION_EX *at) { return at->IdleTime.QuadPart; }'
version 'the DS area has both of its forms' 0 '#include <prcb/nt.h>
int sizes[sizeof(PEBS_DS_SAVE_AREA) == 0xa0 && sizeof(PRCB_PEBS_DS_SAVE_AREA_WIN8) == 0x60 ? 1 : -1];
uint64_t get(PEBS_DS_SAVE_AREA *at) { return at->As64Bit.PebsGpCounterReset[0]; }'
version 'and programs for Windows 8 the first by its name' 0 '#define PRCB_NT_DS_AREA_WIN8
#include <prcb/nt.h>
uint64_t get(PROCESSOR_PROFILE_CONTROL_AREA *at, PEBS_DS_SAVE_AREA *ds)
{ return at->PebsDsSaveArea.PebsCounterReset0 + ds->PebsIndex; }'

# A wrong offset must stop a build, or the asserts above prove nothing.
if out=$(printf '#include <prcb/nt.h>\n#include "layouts.h"\nSIZE(PERFORMANCE_DATA, 0x118);\n' |
    gcc -x c -std=c11 -fsyntax-only -I"$source/include" -I"$here" - 2>&1); then
    report 1 "a wrong size is found" "it compiles"
else
    report 0 "a wrong size is found" ''
fi

# Status values stand in two headers, for who includes either; winnt.h has a few as DWORDs.
statuses() { # HEADER
    sed -nE 's/^#define (STATUS_[A-Z0-9_]+) +\(\([A-Z]+\)(0x[0-9A-F]+)\)$/\1 \2/p' \
        "$source/include/$1" | sort
}
ours=$(statuses prcb/nt.h) public=$(statuses compat/ntstatus.h) few=$(statuses compat/winnt.h)
nothing_but() { # LINES-THAT-DIFFER ALL LEAST: none differs, of more than so many
    echo "$1"
    [[ -z $1 && $(wc -l <<<"$2") -gt $3 ]]
}
check "status values of prcb/nt.h are those of ntstatus.h" \
    nothing_but "$(comm -23 <(echo "$ours") <(echo "$public"))" "$ours" 15
check "status values of winnt.h are those of ntstatus.h" \
    nothing_but "$(comm -23 <(grep -v ABANDONED <<<"$few") <(echo "$public"))" "$few" 5
check "a status value that differs is found" \
    grep . <(comm -23 <(echo "STATUS_RETRY 0xC000022E") <(echo "$public"))

export PKG_CONFIG_PATH=$build/meson-uninstalled LD_LIBRARY_PATH=$build/src/nt/compat:$build/src/lib
if ! flags=$(pkg-config --cflags --libs prcb-nt 2>&1); then
    report 1 "pkg-config knows prcb-nt" "$flags"
fi

# program NAME COMPILER FILE OPTION...: built, run, output in $out.
program() {
    local name=$1 compiler=$2 file=$3 status
    shift 3
    # shellcheck disable=SC2086 # flags are words
    # what Windows programs do all the time, and these compilers can be made to dislike
    out=$("$compiler" "$@" -Wall -Wextra -Werror -Wno-cast-function-type \
        -Wno-missing-field-initializers -o "$work/program" "$here/$file" $flags 2>&1)
    status=$?
    report $status "$name compiles" "$out"
    if [[ $status -ne 0 ]]; then return 1; fi
    out=$("$work/program" 2>&1)
    status=$?
    report $status "$name runs" "$out"
    return $status
}

expect() { # NAME PATTERN
    grep -Eq -- "$2" <<<"$out"
    report $? "$1" "$out"
}

for compiler in gcc clang; do
    if program "ported.c, $compiler" $compiler ported.c; then
        expect "ported.c, $compiler: enabled" '^QueryThreadProfiling: 0, 1$'
        expect "ported.c, $compiler: a switch for its sleep" '^ContextSwitchCount [1-9]'
        expect "ported.c, $compiler: reasons" 'WaitReasonBitMap 0x[1-9a-f]'
        expect "ported.c, $compiler: cycles and passes" 'CycleTime [1-9][0-9]* RetryCount [1-9]'
        expect "ported.c, $compiler: time counts" '^HwCounters\[0\] type 0 value [1-9]'
        expect "ported.c, $compiler: disabled" '^DisableThreadProfiling: 0$'
    fi
done
for compiler in g++ clang++; do
    for standard in c++11 c++20; do
        if program "ported.cpp, $compiler $standard" $compiler ported.cpp -std=$standard; then
            expect "ported.cpp, $compiler $standard: switches" '^switches ([4-9]|[0-9]{2,})$'
            expect "ported.cpp, $compiler $standard: unasked is 0" '^not asked for 0$'
            expect "ported.cpp, $compiler $standard: two counters" '^counters 2$'
            # 40 MB: more than the C library ever takes from its heap, so never touched before
            expect "ported.cpp, $compiler $standard: page faults" '^faults ([1-9][0-9]{2,})$'
        fi
    done
done
for compiler in gcc clang; do
    if program "sdk_headers.c, $compiler" $compiler sdk_headers.c -std=gnu11 -I"$build/src/nt/compat"; then
        while IFS= read -r line; do
            report "$([[ $line == ok* ]]; echo $?)" "sdk_headers.c, $compiler: ${line#*- }" "$line"
        done < <(grep -E '^(not )?ok' <<<"$out")
    fi
done
for linking in '' -rdynamic; do
    program "same_names.c ${linking:-alone}" gcc same_names.c $linking &&
        expect "same_names.c ${linking:-alone}: the library's" '^status 0x0 length 0x30$'
done
# shellcheck disable=SC2086 # flags are words
out=$(gcc -DSHARED -shared -fPIC -Wno-cast-function-type -o "$work/same_names.so" \
    "$here/same_names.c" $flags 2>&1 && gcc -o "$work/main" "$here/same_names_main.c" 2>&1 &&
    "$work/main" "$work/same_names.so" 2>&1)
report $? "same_names.c as a shared object runs" "$out"
expect "same_names.c as a shared object: the library's" '^status 0x0 length 0x30$'

program "names.c" gcc names.c -std=gnu11 -I"$build/src/nt/compat" &&
    while IFS= read -r line; do
        report "$([[ $line == ok* ]]; echo $?)" "names.c: ${line#*- }" "$line"
    done < <(grep -E '^(not )?ok' <<<"$out")

echo "1..$number"
exit "$failed"
