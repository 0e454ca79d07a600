/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Debug Store buffers of anything: the first byte chooses the format, the rest is the
 * buffer. What was read is written again, and must be the same bytes.
 */
#include <assert.h>
#include <string.h>

#include <prcb/pebs.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct place {
    const uint8_t *bytes;
    size_t at, length;
};

static int check(const struct prcb_pebs_record *record, void *ctx)
{
    struct place *place = ctx;
    uint8_t bytes[65536];
    size_t length;

    assert(record->length && place->at + record->length <= place->length);
    assert(!prcb_pebs_encode(record, bytes, sizeof(bytes), &length, NULL));
    assert(length == record->length && !memcmp(bytes, place->bytes + place->at, length));
    place->at += length;
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct place place = {data + 1, 0, size - 1};
    struct prcb_error err = {0};
    int result;

    if (!size)
        return 0;
    result = prcb_pebs_walk(data[0] % 8, place.bytes, place.length, check, &place, &err);
    assert(result ? err.code == result && *err.text : place.at == place.length);
    return 0;
}
