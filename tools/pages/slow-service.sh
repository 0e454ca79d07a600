# shellcheck shell=bash disable=SC2016
# SPDX-License-Identifier: BSD-2-Clause
# Redis that writes every command to storage before it answers. Needs redis-server and redis-tools.
redis-server --port 7399 --appendonly yes --appendfsync always --save "" --daemonize no >redis.log &
until_it 'redis-cli -p 7399 ping'
redis-benchmark -p 7399 -t set -n 100000000 -c 10 >/dev/null &
pid=$(redis-cli -p 7399 info server | tr -d '\r' | sed -n 's/^process_id://p')
part stat
show "prcb stat -p $pid --for 3"
part why
show "prcb why -p $pid --for 3"
part after
show 'redis-cli -p 7399 config set appendfsync everysec'
show "prcb stat -p $pid --for 3"
