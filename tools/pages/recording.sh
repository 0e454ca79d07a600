# shellcheck shell=bash disable=SC2016
# SPDX-License-Identifier: BSD-2-Clause
# Two programs in a pipe: one reads files, one counts words.
part report
show 'prcb record -F 2000 -- sh -c "tar -C /usr/share -cf - doc | /usr/bin/python3 -c \"import re, sys; print(len(set(re.findall(rb\\\"[a-z]+\\\", sys.stdin.buffer.read(30000000)))))\""'
show 'prcb report --top 5'
