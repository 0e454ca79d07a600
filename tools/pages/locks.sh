# shellcheck shell=bash disable=SC2016
# SPDX-License-Identifier: BSD-2-Clause
# Three threads that share a lock; one of them writes to storage while it holds it.
cc -O2 -g -o ledger "$TREE/tools/pages/ledger.c" -pthread
./ledger &
part why
show "prcb why -p $! --for 3"
part objects
show "prcb why -p $! --for 3 --objects --no-whom"
cc -O2 -g -o transfer "$TREE/tools/pages/transfer.c" -pthread
./transfer &
until_it '[[ $(grep -l "^voluntary_ctxt_switches:.*[1-9]" /proc/'$!'/task/*/status | wc -l) == 2 ]]'
part chain
show "prcb why -p $! --chain"
