#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Completion: loads completion/prcb.bash ($1) and asks it as readline would; zsh's ($2), with what stands
# for its own functions, and fish's ($3), where these shells are. The program is $PRCB. Prints TAP.
# shellcheck disable=SC2016,SC2317 # those shells expand; functions are called by name, through has
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
    for option in $("$PRCB" "$command" --help | sed -nE 's/^ {2,6}(-., )?(--[a-z-]+).*/\2/p'); do
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

# What zsh would be told to offer: words of _describe and compadd, names of its other functions.
ask_zsh() { # WORD...
    zsh -fc 'path=(${PRCB:h} $path); compadd() { print -l -- "$@"; }
        _describe() { print -l -- "${(@P)4}"; }; _pids() { return 1; }
        for name in _files _normal; do functions[$name]="print $name \$*"; done
        words=("${(@)argv[2,-1]}"); CURRENT=$#words; source $1' zsh "$zsh" prcb "$@" 2>&1
}

ask_fish() { # WORDS
    PATH=${PRCB%/*}:$PATH HOME=${TMPDIR:-/tmp} fish --no-config -c \
        'source $argv[1]; complete -C "prcb $argv[2]"' "$fish" "$1" 2>&1
}

# has NAME PATTERN COMMAND...: a line of what it prints is like the pattern.
has() {
    local name=$1 pattern=$2 out
    shift 2
    out=$("$@")
    grep -qE -- "$pattern" <<<"$out"
    report $? "$name" "${out:0:2000}"
}

zsh=$2 fish=$3
if command -v zsh >/dev/null; then
    for command in $("$PRCB" --completions); do
        has "zsh: $command" "^$command:.+" ask_zsh s
        missing=$(comm -23 <("$PRCB" --completions "$command" | sort) <(ask_zsh "$command" -- | sed 's/:.*//' | sort))
        verdict "zsh: all options of $command" "$([[ -z $missing ]] && echo yes)"
    done
    has "zsh: what an option is for" '^--json:print JSON' ask_zsh doctor --
    has "zsh: processes" "^$$\$" ask_zsh stat -p ''
    has "zsh: threads" "^$$\$" ask_zsh stat -t ''
    has "zsh: processors" '^0$' ask_zsh cpu -C ''
    has "zsh: tiers" '^daemon$' ask_zsh stat --tier ''
    has "zsh: a command line" '^_normal' ask_zsh stat -- sle
    has "zsh: files" '^_files' ask_zsh report ''
else
    skip "zsh" "it is not installed"
fi
if command -v fish >/dev/null; then
    for command in $("$PRCB" --completions); do
        has "fish: $command" "^$command	.+" ask_fish "${command:0:2}"
        missing=$(comm -23 <("$PRCB" --completions "$command" | sort) <(ask_fish "$command --" | sed 's/	.*//' | sort))
        verdict "fish: all options of $command" "$([[ -z $missing ]] && echo yes)"
    done
    has "fish: processes" "^$$\b" ask_fish "stat -p $$"
    has "fish: threads" "^$$\b" ask_fish "stat -t $$"
    has "fish: processors" '^0$' ask_fish "cpu -C "
    has "fish: tiers" '^daemon$' ask_fish "stat --tier "
    has "fish: a command line" '^sleep' ask_fish "stat -- slee"
    has "fish: files" '^/etc/passwd' ask_fish "report /etc/passw"
else
    skip "fish" "it is not installed"
fi
exit "$failed"
