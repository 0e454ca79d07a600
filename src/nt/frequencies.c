/* SPDX-License-Identifier: BSD-2-Clause
 *
 * How long each processor ran at which frequency, where its cpufreq driver keeps count.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "view.h"

static int by_frequency(const void *a, const void *b)
{
    const uint32_t *left = a, *right = b; /* khz is the first member */

    return (*left > *right) - (*left < *right);
}

void nt_frequencies_parse(const char *text, struct nt_frequencies *ret)
{
    unsigned long long khz, hits;
    int length = 0;

    ret->count = 0;
    while (ret->count < NT_FREQUENCIES_MAX &&
           sscanf(text, "%llu %llu %n", &khz, &hits, &length) == 2 && khz && khz <= UINT32_MAX) {
        ret->states[ret->count].khz = (uint32_t)khz;
        ret->states[ret->count++].hits = hits;
        text += length;
    }
    qsort(ret->states, ret->count, sizeof(ret->states[0]), by_frequency);
}

void nt_frequencies_read(const char *root, uint32_t number, struct nt_frequencies *ret)
{
    char path[96], *text;

    snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%u/cpufreq/stats/time_in_state",
             number);
    text = nt_read_file(root, path);
    ret->count = 0;
    if (text)
        nt_frequencies_parse(text, ret);
    free(text);
}
