# shellcheck shell=bash disable=SC2016
# SPDX-License-Identifier: BSD-2-Clause
# A shop under gunicorn with four kinds of slow requests (tests/cases/requests), half a processor, and four customers.
cp "$TREE/tests/cases/requests/shop.py" "$TREE/tests/cases/requests/buy.py" .
PYTHONPATH=$(realpath "$(dirname "$(realpath bin/prcb)")/../../python")
export PYTHONPATH PYTHONDONTWRITEBYTECODE=1
group=/sys/fs/cgroup/cpu/page-shop
mkdir -p $group
echo 50000 >$group/cpu.cfs_quota_us
sh -c "echo \$\$ >$group/cgroup.procs
exec gunicorn --log-level error --threads 5 --bind unix:shop.sock shop:application" &
shop=$!
until_it "test -S shop.sock && pgrep -P $shop"
/usr/bin/python3 buy.py shop.sock 8 >took &
customers=$!
sleep 1
worker=$(pgrep -P $shop)
part spans
show "prcb why --spans $worker --for 4 --budget 20 --top 5 --stacks 2"
part customers
wait $customers
show 'head -8 took                            # span, what was asked for, milliseconds'
kill $shop
wait $shop || true
until_it "rmdir $group"
