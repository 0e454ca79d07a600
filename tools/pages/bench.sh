# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause
# Two builds of one program: the second takes a lock that another thread holds.
cc -O1 -g -o old "$TREE/tests/cli/bench_work.c" -pthread
part difference
show "prcb bench -- ./old 20 --vs ./old 20 lock"
part gate
show "prcb bench --save base.json -o /dev/null -- ./old 20"
show "prcb bench --baseline base.json --fail-if 'run>+2%' -- ./old 22; echo \"exit status \$?\""
