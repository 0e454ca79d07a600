#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# How the files look: clang-format, shellcheck, plain text rules. Prints TAP.
# shellcheck disable=SC2317 # the functions are called by name, through check
set -u
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
# shellcheck source=tests/tap.sh
source tests/tap.sh

if ! git -c safe.directory="$PWD" ls-files >/dev/null 2>&1; then
    skip "style" "not a git checkout: no list of files"
    exit 0
fi
tracked() {
    git -c safe.directory="$PWD" ls-files -- "$@" | while IFS= read -r file; do
        [[ -f $file ]] && printf '%s\n' "$file"
    done
}

formatted() {
    tracked '*.c' '*.h' '*.inc' | xargs clang-format --dry-run -Werror
}

shell_checked() {
    tracked '*.sh' '*.bash' dev .ci/run | xargs shellcheck -x
}

licence_named() {
    local bad
    bad=$(tracked '*.c' '*.h' '*.def' '*.inc' '*.proto' '*.map' '*.suppr' '*.spec' '*.py' '*.pyi' \
        '*.sh' '*.bash' '*.build' '*.scd' '*.js' '*.css' '*.html' meson_options.txt dev | python3 -c '
import itertools, sys
for name in sys.stdin.read().splitlines():
    with open(name, errors="replace") as file:
        if "SPDX-License-Identifier: " not in "".join(itertools.islice(file, 3)):
            print(name)')
    printf '%s' "$bad"
    [[ -z $bad ]]
}

no_trailing_blanks() {
    ! tracked '*.c' '*.h' '*.def' '*.inc' '*.map' '*.py' '*.pyi' '*.sh' '*.md' '*.build' '*.scd' '*.bash' \
        '*.js' '*.css' '*.html' dev |
        xargs grep -nE '[[:blank:]]+$'
}

# base/array.h checks what growing may overflow, and hands libc no NULL for nothing. Of exactly so many
# cells as there are, one array a thread: the three files; what others' interfaces are: the last two.
arrays_grow_in_one_place() {
    ! tracked 'src/*.c' 'src/*.h' 'src/*.inc' | xargs grep -nE '\b(realloc|reallocarray|qsort|qsort_r|bsearch)\(' |
        grep -vE '^src/(base/array.h|lib/figures/account_rows.c|reports/accounts/stat_idle.c|services/postgresql/store.c|tools/top/top_source.c|python/binding.h|nt/compat/porting.c):'
}

# NT's words for Linux' things are in what is NT's: its calls, layouts, dumps, --nt, names that machines
# read (JSON, C, Python, SQL: dpc_ns, reason), and the tables that say which of them is which.
words_of_linux() {
    ! tracked 'src/reports/*' 'src/recording/exports/*' 'src/tools/*' 'src/analysis/metrics/*' 'src/services/*' \
        'src/lib/figures/*' 'docs/*.md' 'docs/hacking/*' 'man/prcb*.scd' 'examples/prometheus/*' 'examples/grafana/prcb.json' \
        README.md |
        grep -vE '^(src/tools/cli/cmd_dump.c|docs/(dumps|wine|porting|layout-sources|figures|glossary|principles|processor-power-state|ds-areas).md|man/prcb[-_](dump|layout|power|wine)|src/reports/power/|docs/hacking/2[2-7])' |
        xargs grep -nE '\bDPCs?\b|%dpc|"dpcs?"|WAIT REASON|wait_reason_name|Wr(AlertByThreadId|Queue|Preempted)|DelayExecution' |
        grep -vE '/(stat_table|stat_json|report_json|report_csv|switch_rows|families|pmda)\.c:|families.def:.*what NT calls|families.def:.*class 8|prcb-(cpu|report).1.scd:.*(SYSTEM_|KernelTime|InterruptTime|Ready Thread In DPC|"dpcs")|processor_figures.def:.*PART\(dpc_ns|processors.md:.*(NT.s members|includes idle)|windows_|prcb_wait_reason_name\*|prcb_sample.3|libprcb.3|fleet.md:'
}

version=$(clang-format --version 2>/dev/null | grep -oE 'version [0-9]+' | head -n 1)
if [[ $version == "version 14" ]]; then
    check "clang-format" formatted
else
    skip "clang-format" "releases differ in taste: the tree follows 14, here is ${version:-none}"
fi
if command -v shellcheck >/dev/null; then
    check "shellcheck" shell_checked
else
    skip "shellcheck" "not installed"
fi
check "every file names its licence" licence_named
check "no blanks at line ends" no_trailing_blanks
check "lines of documents have at most 100 columns" tests/style/columns.py
check "arrays grow, and are sorted, by base/array.h" arrays_grow_in_one_place
check "Linux' views have Linux' words" words_of_linux
exit "$failed"
