/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The /proc parsers on anything. The first byte chooses the parser, the rest is the
 * text: a name or a file can hold what a stranger wrote.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "procfs.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void parse_pids(const char *text, size_t length)
{
    const char *at = text, *end = text + length;
    pid_t pid = -1;

    for (const char *before = at; procfs_parse_pid(&at, end, &pid) > 0; before = at)
        assert(at > before && at <= end && pid >= 0);
    assert(at >= text && at <= end);
}

static void parse_stat(const char *text, size_t length)
{
    struct procfs_stat stat, before;

    memset(&stat, 0xa5, sizeof(stat));
    before = stat;
    if (procfs_parse_stat(text, length, &stat))
        assert(!memcmp(&stat, &before, sizeof(stat)));
    else
        assert(memchr(stat.comm, '\0', sizeof(stat.comm)) && stat.tid >= 0 && stat.ppid >= 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct procfs_status status = {.tgid = -1};
    struct procfs_schedstat schedstat;
    const char *text = (const char *)data + 1;

    if (!size)
        return 0;
    switch (data[0]) {
    case 's':
        parse_stat(text, size - 1);
        break;
    case 'u':
        if (procfs_parse_status(text, size - 1, &status))
            assert(status.tgid == -1);
        else
            assert(status.tgid >= 0);
        break;
    case 'c':
        procfs_parse_schedstat(text, size - 1, &schedstat);
        break;
    case 'p':
        parse_pids(text, size - 1);
        break;
    default:
        break;
    }
    return 0;
}
