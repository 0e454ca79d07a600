#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# prcbd, prcb-history, prcb-exporter and the agent of PCP under systemd, inside the clean root that clean-root.sh
# booted: the socket starts prcbd, its sandbox holds and lets it work, it comes back when it is killed,
# and a purge while it runs takes everything away. Writes "ok" and "not ok" lines, without numbers.

check() { # NAME COMMAND...
    name=$1
    shift
    if out=$("$@" 2>&1); then
        echo "ok - $name"
    else
        echo "not ok - $name"
        printf '%s\n' "$out" | tail -n 25 | sed 's/^/# /'
    fi
}

state_is() { # STATE UNIT
    systemctl is-active "$2" | grep -x "$1"
}

waits_for() { # COMMAND...: for a minute at most
    for _ in $(seq 600); do
        if "$@" >/dev/null 2>&1; then
            return 0
        fi
        sleep 0.1
    done
    "$@"
}

main_pid() {
    systemctl show -P MainPID prcbd.service
}

serves_nobody() {
    setpriv --reuid=nobody --regid=nogroup --clear-groups prcb stat -j -- true |
        grep '"tier": *"daemon"' || {
        journalctl --no-pager -n 20 -u prcbd.service
        return 1
    }
}

# What the kernel says of it: its user, CAP_PERFMON (38) and CAP_BPF (39) and no other, nothing
# that a program it starts could gain, a filter of system calls.
confined() {
    status=/proc/$(main_pid)/status
    uid=$(id -u prcbd)
    cat "$status"
    grep -q "^Uid:.$uid.$uid.$uid.$uid$" "$status" &&
        grep -q '^CapEff:.000000c000000000$' "$status" &&
        grep -q '^CapPrm:.000000c000000000$' "$status" &&
        grep -q '^NoNewPrivs:.1$' "$status" && grep -q '^Seccomp:.2$' "$status"
}

killed_it_comes_back() {
    before=$(main_pid)
    [ "$before" -gt 1 ] && kill -KILL "$before" || return 1
    waits_for serves_nobody && [ "$(main_pid)" != "$before" ]
}

reloads() {
    before=$(main_pid)
    systemctl reload prcbd.service && serves_nobody && [ "$(main_pid)" = "$before" ]
}

# A session that is open while the package is upgraded, and while the new daemon takes over, has its account to the
# end: the thread sleeps four seconds, and is counted as asleep for no less.
upgraded_while_it_is_used() {
    dpkg -i --force-downgrade /debs/older-prcbd.deb && systemctl restart prcbd.service || return 1
    setpriv --reuid=nobody --regid=nogroup --clear-groups prcb stat -j -- sleep 4 >/tmp/session.json &
    session=$!
    waits_for sh -c 'grep -qsx sleep /proc/[0-9]*/comm' && dpkg -i /debs/prcbd_*.deb && systemctl restart prcbd.service && wait "$session"
    ended=$?
    cat /tmp/session.json
    [ "$ended" = 0 ] && dpkg-query -W prcbd | grep -v 0.0.9 && grep -q '"tier": *"daemon"' /tmp/session.json &&
        grep -qE '"cause": *"sleep"[^}]*"ns": *[4-9][0-9]{9}' /tmp/session.json && serves_nobody
}

# The unit's own command with shorter intervals and less room, where files of long ago lie already: of seven days,
# which with today's leave no room for the first.
history=/var/lib/prcb-history
history_runs() {
    unit=$(systemctl show -P FragmentPath prcb-history.service)
    mkdir -p /run/systemd/system/prcb-history.service.d "$history"
    for day in 1 2 3 4 5 6 7; do touch "$history/prcb-2020-01-0$day.db"; done
    {
        printf '[Service]\nExecStart=\n'
        sed -n 's/-d 10 --keep 7 --max-size 1024/-d 0.1 --keep 7 --max-size 1/; /^ExecStart=.* --max-size 1$/p' "$unit"
    } >/run/systemd/system/prcb-history.service.d/quick.conf
    if grep -q 'ExecStart=/.*-d 0.1' /run/systemd/system/prcb-history.service.d/quick.conf &&
        systemctl daemon-reload && systemctl start prcb-history.service &&
        waits_for sh -c "prcb top -b -r $history -n 1 -i -g names | grep '^systemd '" &&
        [ "$(stat -c %a "$history")" = 700 ] && [ ! -e "$history/prcb-2020-01-01.db" ] &&
        [ -e "$history/prcb-2020-01-02.db" ]; then
        rm "$history"/prcb-2020-*.db
        return
    fi
    journalctl --no-pager -n 20 -u prcb-history.service
    ls -la "$history"
    return 1
}

# Its share of the room is 128 KiB a file: several, and never much more than a mebibyte of them.
history_is_bounded() { # how fast a file grows depends on how much runs on the machine
    waits_for sh -c "[ \$(ls $history/prcb-*.db | wc -l) -ge 2 ]" && state_is active prcb-history.service &&
        [ "$(cat "$history"/prcb-*.db | wc -c)" -lt 1600000 ]
    result=$?
    ls -la "$history"
    systemctl stop prcb-history.service && ! systemctl is-failed prcb-history.service && return "$result"
}

# Debian's pcp starts pmlogger when it is configured, and fails where that fails; nothing here needs it.
# PCP's own scripts take the agent in and out, as its README says.
agent_installs() {
    export DEBIAN_FRONTEND=noninteractive
    for unit in pmlogger pmie pmproxy; do
        printf '[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=/bin/true\n' \
            >"/etc/systemd/system/$unit.service"
    done
    systemctl daemon-reload
    apt-get -qq install -y --no-download --no-install-recommends pcp </dev/null &&
        dpkg -i /debs/pcp-pmda-prcb_*.deb </dev/null &&
        sed -i '/^profile_all/d' /etc/prcb/prcbd.conf &&
        echo 'profile_all = group pcp' >>/etc/prcb/prcbd.conf &&
        systemctl reload-or-restart prcbd.service && systemctl start pmcd.service &&
        cd /var/lib/pcp/pmdas/prcb && ./Install </dev/null
}

agent_has_figures() {
    waits_for sh -c 'pminfo -f prcb.up | grep -x " *value 1"' && pminfo -f prcb.all.cpu.idle &&
        grep -q '^CapEff:.0*$' "/proc/$(pgrep -x pmdaprcb)/status" &&
        [ "$(ps -o user= -C pmdaprcb)" = pcp ] && pmrep -s 2 -t 0.2 :prcb-cpu
}

agent_is_removed() {
    (cd /var/lib/pcp/pmdas/prcb && ./Remove </dev/null) && ! pminfo prcb && ! pgrep -x pmdaprcb &&
        apt-get -qq purge -y pcp-pmda-prcb pcp
}

exporter_installs() {
    export DEBIAN_FRONTEND=noninteractive
    dpkg --unpack /debs/prcb-exporter_*.deb </dev/null &&
        apt-get -qq -f install -y --no-download --no-install-recommends </dev/null &&
        sed -i '/^profile_all/d' /etc/prcb/prcbd.conf &&
        echo 'profile_all = group prcb-observers' >>/etc/prcb/prcbd.conf &&
        systemctl reload-or-restart prcbd.service && systemctl restart prcb-exporter.service
}

scrape() {
    python3 -c "import urllib.request as u; print(u.urlopen('http://127.0.0.1:10042/metrics').read().decode())"
}

is_up() {
    scrape | grep -x 'prcb_up 1'
}

# As its unit has it, from prcbd.
exporter_has_figures() {
    waits_for is_up &&
        scrape | grep 'tier="daemon"' && scrape | grep 'prcb_cgroup_run_seconds_total.*prcb-exporter.service' && return 0
    journalctl --no-pager -n 20 -u prcb-exporter.service
    return 1
}

exporter_is_confined() {
    status=/proc/$(systemctl show -P MainPID prcb-exporter.service)/status
    uid=$(id -u prcb-exporter)
    cat "$status"
    grep -q "^Uid:.$uid.$uid.$uid.$uid$" "$status" && grep -q '^CapEff:.0*$' "$status" &&
        grep -q '^CapBnd:.0*$' "$status" && grep -q '^NoNewPrivs:.1$' "$status" &&
        grep -q '^Seccomp:.2$' "$status"
}

exporter_is_removed() {
    pid=$(systemctl show -P MainPID prcb-exporter.service)
    apt-get -qq purge -y prcb-exporter && [ ! -e "/proc/$pid" ] && [ ! -e /etc/default/prcb-exporter ]
}

purged_while_it_runs() {
    export DEBIAN_FRONTEND=noninteractive
    pid=$(main_pid)
    apt-get -qq purge -y prcbd || return 1
    ls -la /sys/fs/bpf /run/prcb
    [ ! -e "/proc/$pid" ] && [ ! -e /run/prcb ] && [ ! -e /sys/fs/bpf/prcbd ] &&
        ! getent passwd prcbd
}

check "its socket is there from the start" state_is active prcbd.socket
check "the daemon is not" state_is inactive prcbd.service
check "a client starts it" serves_nobody
check "it runs" state_is active prcbd.service
check "it is confined" confined
check "it reloads" reloads
check "killed, it comes back" killed_it_comes_back
check "it is confined again" confined
check "it is upgraded while it is used" upgraded_while_it_is_used
check "it is confined after the upgrade" confined
check "the history is nobody's but who enables it" sh -c '! systemctl is-enabled prcb-history.service'
check "it keeps what happens and drops what is old" history_runs
check "it is bounded, and begins files" history_is_bounded
check "the agent of PCP installs" agent_installs
check "it has figures, without capabilities" agent_has_figures
check "it is removed" agent_is_removed
check "the exporter installs" exporter_installs
check "it has figures, of prcbd" exporter_has_figures
check "it has no privilege" exporter_is_confined
check "it is removed" exporter_is_removed
check "a purge ends it and leaves nothing" purged_while_it_runs
