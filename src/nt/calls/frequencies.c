/* SPDX-License-Identifier: BSD-2-Clause
 *
 * How long each processor ran at which frequency, where its cpufreq driver keeps count.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "cpu_files.h"
#include "view.h"

static int by_frequency(const void *a, const void *b)
{
    const uint32_t *left = a, *right = b; /* khz is the first member */

    return (*left > *right) - (*left < *right);
}

/* Reads a line "1800000 4711": kHz and ticks. */
static bool take_line(const char *line, size_t length, struct nt_frequencies *ret)
{
    const char *blank = memchr(line, ' ', length);
    size_t at = blank ? (size_t)(blank - line) : length;
    uint64_t khz, hits;

    if (!blank || cpu_parse_number(line, at, &khz) ||
        cpu_parse_number(blank + 1, length - at - 1, &hits) || !khz || khz > UINT32_MAX)
        return false;
    ret->states[ret->count].khz = (uint32_t)khz;
    ret->states[ret->count++].hits = hits;
    return true;
}

void nt_frequencies_parse(const char *text, size_t length, struct nt_frequencies *ret)
{
    const char *end = text + length, *line = text, *next;

    ret->count = 0;
    for (; line < end && ret->count < NT_FREQUENCIES_MAX; line = next) {
        const char *stop = memchr(line, '\n', (size_t)(end - line));

        next = stop ? stop + 1 : end;
        if (!take_line(line, (size_t)((stop ? stop : end) - line), ret))
            break;
    }
    array_sort(ret->states, ret->count, by_frequency);
}

void nt_frequencies_read(struct procfs *fs, uint32_t number, struct nt_frequencies *ret)
{
    char name[96];
    size_t length;

    snprintf(name, sizeof(name), "sys/devices/system/cpu/cpu%u/cpufreq/stats/time_in_state",
             number);
    ret->count = 0;
    if (!procfs_read(fs, name, &length))
        nt_frequencies_parse(fs->buffer, length, ret);
}
