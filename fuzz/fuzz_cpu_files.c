/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The parsers of what procfs and sysfs say about processors, on anything. The first byte chooses
 * the parser, the rest is the text: a recorded tree may come from anywhere.
 */
#include <assert.h>
#include <string.h>

#include "cpu_files.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define ROOM 8

static void parse_list(const char *text, size_t length)
{
    bool set[ROOM + 1] = {[ROOM] = true};
    uint32_t end = 0xa5a5;

    if (cpu_parse_list(text, length, set, ROOM, &end)) {
        assert(end == 0xa5a5);
        return;
    }
    assert(end <= MOST_PROCESSORS && set[ROOM]);
    for (uint32_t i = end; i < ROOM; i++)
        assert(!set[i]);
}

static void parse_stat(const char *text, size_t length)
{
    const char *at = text, *end = text + length;
    struct cpu_stat stat;

    for (const char *before = at; cpu_parse_stat(&at, end, &stat) > 0; before = at) {
        assert(at > before && at <= end);
        assert(stat.number < MOST_PROCESSORS);
        assert(stat.fields > CPU_STAT_IDLE && stat.fields <= CPU_STAT_FIELDS);
    }
    assert(at >= text && at <= end);
}

static void parse_columns(const char *text, size_t length)
{
    static const char *const skip[] = {"TLB", "PMI", NULL};
    uint64_t sums[ROOM + 1] = {[ROOM] = 77};

    cpu_parse_columns(text, length, skip, sums, ROOM);
    assert(sums[ROOM] == 77);
}

static void parse_small(const char *text, size_t length)
{
    uint32_t mhz[ROOM + 1] = {[ROOM] = 77};
    uint64_t number = 77;
    char word[ROOM + 1] = "";

    word[ROOM] = 'x';
    cpu_parse_mhz(text, length, mhz, ROOM);
    assert(mhz[ROOM] == 77);
    if (cpu_parse_number(text, length, &number))
        assert(number == 77);
    if (!cpu_parse_name(text, length, word, ROOM)) {
        assert(memchr(word, '\0', ROOM) && word[0]);
        for (const char *at = word; *at; at++)
            assert(*at >= ' ' && *at < 127);
    }
    assert(word[ROOM] == 'x');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data + 1;

    if (!size)
        return 0;
    switch (data[0]) {
    case 'l':
        parse_list(text, size - 1);
        break;
    case 's':
        parse_stat(text, size - 1);
        break;
    case 'c':
        parse_columns(text, size - 1);
        break;
    case 'n':
        parse_small(text, size - 1);
        break;
    default:
        break;
    }
    return 0;
}
