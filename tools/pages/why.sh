# shellcheck shell=bash disable=SC2016
# SPDX-License-Identifier: BSD-2-Clause
# Programs with a fault each that nobody sees from outside (tests/cases/faulty), and what prcb why says first.
source="$TREE/tests/cases/faulty"
cc -O1 -g -D_GNU_SOURCE -o faulty "$source/faulty.c" -pthread -lresolv
cp "$source"/faulty.* .
javac -d . "$source/Faulty.java"
GO111MODULE=off GOCACHE=$PWD/cache go build -o catalog "$source/faulty.go"
for name in orders shop bank journal crm pricing reports; do cp faulty $name; done
head -c 48000000 /dev/urandom >big
sync big
dd if=big iflag=nocache count=0 status=none
asked() { # COMMAND...: what is said of it when it has run for a second
    "$@" >/dev/null &
    sleep 1
    show "prcb why $! --for 3${lines:- | sed '/^$/q'}"
    kill -9 $!
    wait $! 2>/dev/null || true
}
inside() { # CONTROLLER FILE VALUE COMMAND...: in a cgroup of version 1
    local group=/sys/fs/cgroup/$1/page-$1
    mkdir -p "$group"
    echo "$3" >"$group/$2"
    shift 3
    exec sh -c 'echo $$ >"$0/cgroup.procs"; exec "$@"' "$group" "$@"
}
part convoy
asked ./orders convoy
part whole
lines=" " asked ./orders convoy
part deadlock
asked ./bank deadlock
part relay
asked ./shop relay
part fsync
asked ./journal storage data
part dns
asked ./crm names
part quota
asked inside cpu cpu.cfs_quota_us 20000 ./pricing busy
./reports busy >/dev/null &
noise=$!
part neighbour
asked ./pricing busy
kill -9 $noise
part memory
asked inside memory memory.limit_in_bytes 16777216 ./reports memory big
part gil
asked /usr/bin/python3 faulty.py gil
part asyncio
asked /usr/bin/python3 faulty.py asyncio
part java
asked java -Xint -cp . Faulty
part go
asked ./catalog
part node
asked node faulty.js
sleep 0.5
rmdir /sys/fs/cgroup/cpu/page-cpu /sys/fs/cgroup/memory/page-memory
