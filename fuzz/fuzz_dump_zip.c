/* SPDX-License-Identifier: BSD-2-Clause
 *
 * ZIP archives: the directory at the end, entries and what is packed. The sink counts.
 */
#include "dump_sink.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define LIMIT (1u << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int sink_take(struct sink *s, size_t length)
{
    if (length > sizeof(s->buffer))
        abort();
    s->length += length;
    return s->length > s->limit ? -EFBIG : 0;
}

int sink_damaged(struct sink *s, const char *format)
{
    return -EINVAL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct sink sink;
    struct prcb_error err;
    uint8_t *copy = malloc(size ? size : 1); /* so that a read past its end is seen */

    if (!copy)
        return 0;
    memcpy(copy, data, size);
    sink.length = 0;
    sink.limit = LIMIT;
    sink.path = "input";
    sink.err = &err;
    dump_zip_unpack(&sink, copy, size);
    free(copy);
    return 0;
}
