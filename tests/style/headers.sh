#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Every header compiles alone: the public ones as C and as C++ by both compilers
# and without GNU extensions, the inner ones as the C of this tree, those of the
# eBPF side for eBPF. Prints TAP.
set -u
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
# shellcheck source=tests/tap.sh
source tests/tap.sh
warnings=(-Wall -Wextra -Werror -Wpedantic)
inner=(-D_GNU_SOURCE -Iinclude -Iinclude/compat)
while IFS= read -r folder; do
    inner+=("-I$folder")
done < <(find src -name '*.h' -printf '%h\n' | sort -u)

# compile NAME HEADER COMPILER...: an empty file that includes nothing else.
compile() {
    local name=$1 header=$2 out
    shift 2
    out=$(printf '#include "%s"\nextern int declared;\n' "$header" | "$@" -fsyntax-only - 2>&1)
    report $? "$name" "$out"
}

for header in include/*/*.h; do
    name=${header#include/}
    for cc in gcc clang; do
        compile "$name, C11, $cc" "$name" $cc -std=c11 "${warnings[@]}" -Iinclude -x c
    done
    for cxx in g++ clang++; do
        compile "$name, C++11, $cxx" "$name" $cxx -std=c++11 "${warnings[@]}" -Iinclude -x c++
    done
done

# Behind all headers of the C standard, whose macros have short names: "I" of <complex.h>.
standard=(assert complex ctype errno fenv float inttypes iso646 limits locale math setjmp signal
    stdalign stdarg stdatomic stdbool stddef stdint stdio stdlib stdnoreturn string tgmath threads
    time uchar wchar wctype)
for header in include/prcb/*.h; do
    name=${header#include/}
    out=$( (printf '#include <%s.h>\n' "${standard[@]}" && printf '#include <%s>\n' "$name" &&
        echo 'double _Complex still_there(void) { return I; }') |
        gcc -std=c11 "${warnings[@]}" -Iinclude -x c -fsyntax-only - 2>&1)
    report $? "$name, behind the standard's headers" "$out"
done

# Macros of prcb's own have its prefix; those of nt.h are NT's.
bare_macros() {
    ! grep -nE '^[[:blank:]]*#[[:blank:]]*define[[:blank:]]+' include/prcb/*.h |
        grep -v '^include/prcb/nt\.h' | grep -vE 'define[[:blank:]]+PRCB_'
}
out=$(bare_macros)
report $? "public macros begin with PRCB_" "$out"

triplet=$(gcc -print-multiarch)
while IFS= read -r header; do
    if grep -q '\.skel\.h"' "$header" && [[ ! -d build/src/kernel/bpf ]]; then
        skip "$header" "wants the generated skeleton in build/"
        continue
    fi
    case $header in
    src/services/pmda/*)
        if [[ ! -f /usr/include/pcp/pmapi.h ]]; then
            skip "$header" "libpcp3-dev is not installed"
            continue
        fi
        ;;&
    src/services/postgresql/*)
        if ! server=$(pg_config --includedir-server 2>/dev/null) || [[ ! -f $server/postgres.h ]]; then
            skip "$header" "PostgreSQL's headers are not installed"
            continue
        fi
        compile "$header, C" "$header" gcc -std=gnu11 -Wall -Werror "-I$server" -include postgres.h -Iinclude -I. -x c
        ;;
    src/python/*)
        if ! python=$(pkg-config --cflags python3 2>/dev/null); then
            skip "$header" "python3-dev is not installed"
            continue
        fi
        # shellcheck disable=SC2086
        compile "$header, C" "$header" gcc -std=gnu11 -Wall -Wextra -Werror -Wno-unused-function -Wno-unused-parameter \
            "${inner[@]}" $python -I. -x c
        ;;
    *.bpf.h)
        [[ $(uname -m) == x86_64 ]] && arch=x86 || arch=arm64
        if [[ ! -f /usr/include/bpf/bpf_helpers.h ]]; then
            skip "$header" "libbpf's headers are not installed"
            continue
        fi
        whose=()
        [[ $header != */switch_records.bpf.h ]] || whose=(-DPRCB_CLIENTS -Wno-undefined-internal) # the daemon's alone
        compile "$header, eBPF" "$header" clang -target bpf -mcpu=v3 -g -O2 -Wall -Wextra -Werror "${whose[@]}" \
            -Wno-unused-parameter -Wno-unused-function -D__TARGET_ARCH_"$arch" -I. -Iinclude \
            -Isrc/kernel/abi -Isrc/kernel/bpf -I"/usr/include/$triplet" -x c
        ;;
    *)
        compile "$header, C" "$header" gcc -std=gnu11 -Wall -Wextra -Werror -Wno-unused-function \
            "${inner[@]}" -I. -Ibuild/src/kernel/bpf -x c
        ;;
    esac
done < <(find src -name '*.h' | sort)
exit "$failed"
