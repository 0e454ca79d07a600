# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
#
# bash completion for prcb. Commands, options and what their arguments may be come from the program
# itself (prcb --completions [COMMAND [OPTION]]), so that they cannot differ from what it takes;
# this file finds the numbers of processes, threads and processors.

# Index of the "--" before the word being completed; nothing where there is none.
_prcb_dashes() {
    local i
    for ((i = 2; i < COMP_CWORD; i++)); do
        if [[ ${COMP_WORDS[i]} == -- ]]; then
            echo "$i"
            return
        fi
    done
}

_prcb_numbers() { # PATTERN: processes, or threads of the user's processes
    local path
    for path in $1; do
        echo "${path##*/}"
    done
}

# A command line behind "--": its first word is a program, the rest its own affair.
_prcb_command_line() { # INDEX-OF-DASHES CURRENT-WORD
    if declare -F _command_offset >/dev/null; then
        _command_offset $(($1 + 1))
    elif ((COMP_CWORD == $1 + 1)); then
        mapfile -t COMPREPLY < <(compgen -c -- "$2")
    else
        mapfile -t COMPREPLY < <(compgen -f -- "$2")
    fi
}

_prcb() {
    local program=${COMP_WORDS[0]} word=${COMP_WORDS[COMP_CWORD]} dashes choices
    local previous=${COMP_WORDS[COMP_CWORD - 1]}
    COMPREPLY=()
    if ((COMP_CWORD == 1)); then
        choices="$("$program" --completions 2>/dev/null) --help --version"
        mapfile -t COMPREPLY < <(compgen -W "$choices" -- "$word")
        return
    fi
    dashes=$(_prcb_dashes)
    if [[ -n $dashes ]]; then
        _prcb_command_line "$dashes" "$word"
        return
    fi
    if [[ $word == -* ]]; then
        choices=$("$program" --completions "${COMP_WORDS[1]}" 2>/dev/null)
        mapfile -t COMPREPLY < <(compgen -W "$choices" -- "$word")
        return
    fi
    [[ $previous == -* ]] && choices=$("$program" --completions "${COMP_WORDS[1]}" "$previous" 2>/dev/null)
    case ${choices:-} in
    '') return ;; # readline's own: files
    @folder) mapfile -t COMPREPLY < <(compgen -d -- "$word") && return ;;
    @pid) choices=$(_prcb_numbers '/proc/[0-9]*') ;;
    @tid) choices=$(_prcb_numbers '/proc/[0-9]*/task/[0-9]*') ;;
    *@cpu) choices="${choices%@cpu} $(_prcb_numbers '/sys/devices/system/cpu/cpu[0-9]*' | tr -d cpu)" ;;
    esac
    mapfile -t COMPREPLY < <(compgen -W "$choices" -- "$word")
}

complete -o default -F _prcb prcb
