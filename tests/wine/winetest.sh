#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Wine's own tests of ntdll, as Windows programs, under plain Wine and under prcb-wine: the failures
# of the second are at most those of the first. Not part of ./dev check: it fetches Wine's source
# (25 MB) from Debian's archive, in the release that is installed, into build-winetest/.
#
#   tests/wine/winetest.sh [BUILD] [TEST]...    of a BUILD folder (build); info, rtl, sync, thread, time
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
build=$(cd "$root" && cd "${1:-build}" && pwd)
shift || true
tests=("$@")
((${#tests[@]})) || tests=(info rtl sync thread time)
work=$root/build-winetest
release=$(. /etc/os-release && echo "$VERSION_CODENAME")
export WINEDEBUG=-all HOME=$work
export LD_LIBRARY_PATH=$build/src/lib:$build/src/windows/dump:$build/src/analysis/stack
mkdir -p "$work"/{lists/partial,cache/archives/partial,plain,ours}
cd "$work"

if ! compgen -G 'wine-*/dlls/ntdll/tests/info.c' >/dev/null; then
    echo "deb-src http://deb.debian.org/debian $release main" >sources.list
    apt=(-o "Dir::Etc::sourcelist=$work/sources.list" -o Dir::Etc::sourceparts=/dev/null
        -o "Dir::State::lists=$work/lists" -o "Dir::Cache=$work/cache")
    apt-get -qq "${apt[@]}" update
    apt-get -qq "${apt[@]}" source --download-only wine
    tar xJf wine_*.orig.tar.xz --wildcards '*/dlls/ntdll/tests/*' '*/include/*'
fi
source=$(echo wine-*/dlls/ntdll/tests)
include=${source%%/*}/include

{
    printf '#include <windows.h>\n#define STANDALONE\n#include "wine/test.h"\n'
    printf 'void func_%s(void);\n' "${tests[@]}"
    echo 'const struct test winetest_testlist[] = {'
    for name in "${tests[@]}"; do
        echo "{\"$name\", func_$name},"
    done
    echo '{0, 0}};'
    # What its debug macros call, of a library that is not Windows'.
    cat <<'END'
const char *__wine_dbg_strdup(const char *text)
{
    static char texts[64][512];
    static unsigned next;

    return lstrcpynA(texts[next++ % 64], text, 512);
}
END
} >list.c
sources=("${tests[@]/%/.c}")
sources=("${sources[@]/#/$source/}")
x86_64-w64-mingw32-gcc -O1 -w -D__WINESRC__ -D__WINE_PE_BUILD -DWINE_NO_LONG_TYPES -D_UCRT -DNOMINMAX \
    -I "$include/msvcrt" -I "$include" -I /usr/include/wine/wine/windows -o ntdll_test.exe list.c \
    "${sources[@]}" -luser32 -ladvapi32 -lntdll -lucrtbase

failures() { # PREFIX PROGRAM TEST
    WINEPREFIX=$work/$1 timeout 300 "$2" ./ntdll_test.exe "$3" >"$1-$3.txt" 2>&1 || true
    WINEPREFIX=$work/$1 /usr/lib/wine/wineserver -k || true
    grep -a 'tests executed' "$1-$3.txt" | tail -n 1 | grep -oE '[0-9]+ tests executed.*' || echo "ended early"
}
status=0
for name in "${tests[@]}"; do
    plain=$(failures plain /usr/lib/wine/wine64 "$name")
    ours=$(failures ours "$build/src/nt/wine/prcb-wine" "$name")
    printf '%-7s plain Wine: %s\n%-7s prcb-wine:  %s\n' "$name" "$plain" "" "$ours"
    of_ours=$(grep -oE '[0-9]+ failures' <<<"$ours" || echo 9999)
    of_plain=$(grep -oE '[0-9]+ failures' <<<"$plain" || echo 0)
    ((${of_ours%% *} <= ${of_plain%% *})) || status=1
done
exit "$status"
