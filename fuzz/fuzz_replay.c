/* SPDX-License-Identifier: BSD-2-Clause
 *
 * A file of looks, any bytes: refused with a reason or shown, in either format.
 */
#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "exposition.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[64];
    int fd = memfd_create("looks", MFD_CLOEXEC);
    struct metrics_options options = {
        .replay = path, .names = METRICS_PRCB | METRICS_WINDOWS, .optional = ~0u};
    struct metrics *m = NULL;
    struct prcb_error err = {0};
    FILE *out = fopen("/dev/null", "we");

    assert(fd >= 0 && out && write(fd, data, size) == (ssize_t)size);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    if (metrics_open(&options, &m, &err) || metrics_look(m, &err))
        assert(err.code && *err.text);
    else
        exposition_write(out, EXPOSITION_TEXT, m);
    metrics_close(m);
    fclose(out);
    close(fd);
    return 0;
}
