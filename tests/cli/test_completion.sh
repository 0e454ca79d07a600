#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# bash completion: loads completion/prcb.bash ($1) and asks it as readline would;
# the program is $PRCB. Prints TAP.
set -u
# shellcheck source=tests/tap.sh
source "$(dirname "${BASH_SOURCE[0]}")/../tap.sh"
# shellcheck source=completion/prcb.bash
source "$1"

# ask WORD...: what is offered for the last word.
ask() {
    COMP_WORDS=("$PRCB" "$@")
    COMP_CWORD=$#
    COMPREPLY=()
    _prcb
}

# offers NAME WANTED: it is among the choices; lacks NAME UNWANTED: it is not.
verdict() { # NAME CONDITION
    [[ $2 == yes ]]
    report $? "$1" "offered: ${COMPREPLY[*]:0:20}"
}

offered() {
    local choice
    for choice in "${COMPREPLY[@]}"; do
        if [[ $choice == "$1" ]]; then
            echo yes
            return
        fi
    done
    echo no
}

for command in $("$PRCB" --completions); do
    ask "${command:0:2}"
    verdict "the command $command" "$(offered "$command")"
    # --help is the list a user reads: each long option in it must be offered.
    ask "$command" --
    missing=
    for option in $("$PRCB" "$command" --help | sed -nE 's/^ +(-., )?(--[a-z-]+).*/\2/p'); do
        [[ $(offered "$option") == yes ]] || missing+=" $option"
    done
    verdict "all options of $command" "$([[ -z $missing && ${#COMPREPLY[@]} -gt 1 ]] && echo yes)"
done
ask --v
verdict "--version" "$(offered --version)"
ask doctor --j
verdict "doctor --json, and nothing else" "$([[ ${COMPREPLY[*]} == --json ]] && echo yes)"
ask no-such-command --
verdict "nothing for an unknown command" "$([[ ${#COMPREPLY[@]} -eq 0 ]] && echo yes)"
ask stat -p $$
verdict "process numbers behind stat -p" "$(offered $$)"
ask stat -t $$
verdict "thread numbers behind stat -t" "$(offered $$)"
ask cpu -C ''
verdict "processor numbers behind cpu -C" "$(offered 0)"
for command in stat cpu power; do
    ask "$command" --tier ''
    verdict "tiers behind $command --tier" "$([[ ${COMPREPLY[*]} == "daemon bpf perf" ]] && echo yes)"
done
ask record --tier ''
verdict "tiers behind record --tier" "$([[ ${COMPREPLY[*]} == "bpf perf" ]] && echo yes)"
ask report --table w
verdict "tables behind report --table" "$(offered waits)"
ask power --arch ''
verdict "architectures behind power --arch" "$(offered x64)"
ask stat -- sle
verdict "programs behind --" "$(offered sleep)"
ask stat -o
verdict "files are left to readline" "$([[ $(complete -p prcb) == *"-o default"* ]] && echo yes)"
exit "$failed"
