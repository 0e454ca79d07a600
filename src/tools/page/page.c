/* SPDX-License-Identifier: BSD-2-Clause */
#include "page.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <zlib.h>

#include "data.h"
#include "error.h"
#include "parts.h"

#define FOLD_FIRST 1000000 /* ns: the first cells that are tried */
#define FOLD_MORE  4

/* Deflates without a header, as the page's DecompressionStream expects it. */
static int deflate_raw(const uint8_t *bytes, size_t size, uint8_t **ret, size_t *ret_size)
{
    z_stream zip = {.next_in = (z_const Bytef *)bytes};
    uint8_t *packed;
    size_t room, left = size;
    int step = Z_OK;

    if (deflateInit2(&zip, Z_DEFAULT_COMPRESSION, Z_DEFLATED, -15, 9, Z_DEFAULT_STRATEGY) != Z_OK)
        return -ENOMEM;
    room = deflateBound(&zip, size);
    packed = malloc(room);
    zip.next_out = packed;
    while (packed && step == Z_OK) {
        size_t used = (size_t)(zip.next_out - packed);

        zip.avail_in = left > UINT32_MAX ? UINT32_MAX : (uInt)left;
        zip.avail_out = room - used > UINT32_MAX ? UINT32_MAX : (uInt)(room - used);
        left -= zip.avail_in;
        step = deflate(&zip, left ? Z_NO_FLUSH : Z_FINISH);
        left += zip.avail_in;
    }
    deflateEnd(&zip);
    if (step != Z_STREAM_END) {
        free(packed);
        return packed ? -EIO : -ENOMEM;
    }
    *ret = packed;
    *ret_size = (size_t)(zip.next_out - packed);
    return 0;
}

static size_t base64_size(size_t size)
{
    return (size + 2) / 3 * 4;
}

static void put_base64(const uint8_t *bytes, size_t size, FILE *out)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

    for (size_t i = 0; i < size; i += 3) {
        uint32_t word = (uint32_t)bytes[i] << 16;

        if (i + 1 < size)
            word |= (uint32_t)bytes[i + 1] << 8;
        if (i + 2 < size)
            word |= bytes[i + 2];
        putc(digits[word >> 18], out);
        putc(digits[word >> 12 & 63], out);
        putc(i + 1 < size ? digits[word >> 6 & 63] : '=', out);
        putc(i + 2 < size ? digits[word & 63] : '=', out);
    }
}

/* A recording in a form that fits, deflated. */
struct packed {
    uint8_t *bytes;
    size_t size;
};

static int pack_once(const struct page_data *data, uint64_t fold_ns, struct packed *ret,
                     struct prcb_error *err)
{
    uint8_t *bytes;
    size_t size;
    int result = page_data_write(data, fold_ns, &bytes, &size, err);

    if (result)
        return result;
    result = deflate_raw(bytes, size, &ret->bytes, &ret->size);
    free(bytes);
    return result ? prcb_fail(err, result, "out of memory") : 0;
}

static int pack(const struct recording *recording, const struct page_names *names, uint64_t most,
                struct packed *ret, struct prcb_error *err)
{
    struct page_data data;
    struct packed packed = {0};
    uint64_t span = recording->end_ns - recording->start_ns;
    int result = page_data_open(recording, names, &data, err);

    if (result)
        return result;
    for (uint64_t fold_ns = 0;;) {
        result = pack_once(&data, fold_ns, &packed, err);
        if (result || base64_size(packed.size) <= most)
            break;
        free(packed.bytes);
        packed.bytes = NULL;
        if (fold_ns == PAGE_WHOLE) {
            result = prcb_fail(err, -EFBIG,
                               "the page takes %zu KiB without any timeline, more than is allowed: "
                               "raise --html-max",
                               base64_size(packed.size) >> 10);
            break;
        }
        fold_ns = !fold_ns                     ? FOLD_FIRST
                  : fold_ns * FOLD_MORE < span ? fold_ns * FOLD_MORE
                                               : PAGE_WHOLE;
    }
    page_data_close(&data);
    if (!result)
        *ret = packed;
    return result;
}

static void put_data(const char *id, const struct packed *packed, FILE *out)
{
    fprintf(out, "<script type=\"application/octet-stream\" id=\"%s\">", id);
    put_base64(packed->bytes, packed->size, out);
    fputs("</script>\n", out);
}

int page_write(const struct recording *recording, const struct recording *base,
               const struct page_options *options, FILE *out, struct prcb_error *err)
{
    size_t own = strlen(page_part_head) + strlen(page_part_policy) + strlen(page_part_middle) +
                 strlen(page_part_tail) + 200;
    uint64_t most = options->max_bytes > own ? options->max_bytes - own : 0;
    struct packed packed = {0}, packed_base = {0};
    struct page_names names;
    int result = page_names_init(&names, options->redact);

    if (result)
        return prcb_fail(err, result, "no random key for --redact: %s", strerror(-result));
    if (base)
        result = pack(base, &names, most / 2, &packed_base, err);
    if (!result)
        result = pack(recording, &names, most - base64_size(packed_base.size), &packed, err);
    if (!result) {
        fputs(page_part_head, out);
        fprintf(out, "<meta http-equiv=\"Content-Security-Policy\" content=\"%s\">\n",
                page_part_policy);
        fputs(page_part_middle, out);
        if (base)
            put_data("base", &packed_base, out);
        put_data("data", &packed, out);
        fputs(page_part_tail, out);
    }
    free(packed.bytes);
    free(packed_base.bytes);
    return result;
}
