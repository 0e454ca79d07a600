# shellcheck shell=bash disable=SC2016
# SPDX-License-Identifier: BSD-2-Clause
# Two cgroups whose threads want a processor all the time and get too little of it: "quota" has a limit of a
# twentieth of a processor, "crowded" shares one processor with a neighbour that has more weight.
two=$(awk '$3 == "cgroup2" {print $2; exit}' /proc/mounts)
cpu=$(awk '$3 == "cgroup" && $4 ~ /(^|,)cpu(,|$)/ {print $2; exit}' /proc/mounts)
group() { # NAME WEIGHT [QUOTA-OF-100MS]: makes it, with the processor's limits in whichever version has them
    mkdir -p "$two/$1"
    if [[ $cpu ]]; then
        mkdir -p "$cpu/$1"
        echo $(($2 * 1024 / 100)) >"$cpu/$1/cpu.shares"
        if [[ ${3:-} ]]; then echo "$3" >"$cpu/$1/cpu.cfs_quota_us"; fi
    else
        echo +cpu >"$two/cgroup.subtree_control"
        echo "$2" >"$two/$1/cpu.weight"
        if [[ ${3:-} ]]; then echo "$3 100000" >"$two/$1/cpu.max"; fi
    fi
}
busy() { # NAME: a program of that name that computes, in the group of that name
    ln -sf "$(command -v bash)" "$1"
    (
        echo "$BASHPID" >"$two/$1/cgroup.procs"
        if [[ $cpu ]]; then echo "$BASHPID" >"$cpu/$1/cgroup.procs"; fi
        exec taskset -c 0 "./$1" -c 'while :; do :; done'
    ) &
}
ended() {
    finish
    for name in quota crowded neighbour; do
        until_it "[[ ! -s $two/$name/cgroup.procs ]]"
        rmdir "$two/$name" ${cpu:+"$cpu/$name"}
    done
}
trap ended EXIT
group quota 100 5000
group crowded 100
group neighbour 300
busy quota
busy crowded
busy neighbour
busy neighbour
part groups
export COLUMNS=130 # room for the column throttled
show "prcb stat -a --per-cgroup --for 3"
part neighbour
show "prcb why --cgroup $two/crowded --for 3"
