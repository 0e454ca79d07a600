# SPDX-License-Identifier: BSD-2-Clause
#
# fish completion for prcb. Commands, options and what their arguments may be come from the program
# itself (prcb --descriptions, prcb --completions), so that they cannot differ from what it takes; this file
# finds the numbers of processes, threads and processors.

# The words before the one that is completed.
function __prcb_words
    commandline -opc
end

function __prcb_argument
    set -l words (__prcb_words)
    set -l choices ($words[1] --completions $words[2] $words[-1] 2>/dev/null)
    switch "$choices"
        case ''
            __fish_complete_path (commandline -ct)
        case @folder
            __fish_complete_directories (commandline -ct)
        case @pid
            __fish_complete_pids
        case @tid
            string match -rg '^/proc/[0-9]+/task/([0-9]+)$' /proc/*/task/*
        case '*'
            string match -v '@cpu' (string split ' ' -- $choices)
            if string match -q '*@cpu' -- "$choices"
                string match -rg '/cpu([0-9]+)$' /sys/devices/system/cpu/cpu*
            end
    end
end

function __prcb_complete
    set -l words (__prcb_words)
    set -l word (commandline -ct)
    if contains -- -- $words # a command line of its own
        complete -C (string join ' ' -- $words[(math (contains -i -- -- $words) + 1)..-1] (commandline -ct))
    else if test (count $words) -eq 1
        $words[1] --descriptions 2>/dev/null
        printf '%s\t%s\n' --help 'lists the commands' --version 'prints the version'
    else if string match -q -- '-*' $word
        $words[1] --descriptions $words[2] 2>/dev/null
    else
        __prcb_argument
    end
end

complete -c prcb -f -a '(__prcb_complete)'
