# shellcheck shell=bash disable=SC2034 # failed is for who sources this
# SPDX-License-Identifier: BSD-2-Clause
#
# Sourced by tests that are shell scripts: results as lines of TAP. They end with `exit $failed`.
number=0
failed=0

report() { # STATUS NAME [OUTPUT]: the output, or its last lines, is shown where the status is not 0
    number=$((number + 1))
    if [[ $1 -eq 0 ]]; then
        echo "ok $number - $2"
    else
        failed=1
        echo "not ok $number - $2"
        tail -n 40 <<<"${3:-}" | sed 's/^/# /'
    fi
}

check() { # NAME COMMAND...
    local name=$1 out
    shift
    out=$("$@" 2>&1)
    report $? "$name" "$out"
}

skip() { # NAME REASON
    number=$((number + 1))
    echo "ok $number - $1 # SKIP $2"
}
