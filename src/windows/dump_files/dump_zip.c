/* SPDX-License-Identifier: BSD-2-Clause
 *
 * A dump in a ZIP archive, as people attach them to reports: found by the archive's directory at
 * its end (also of ZIP64), stored or deflated. Lengths are checked against the file before they
 * are used, what is unpacked against the directory's length and checksum.
 */
#ifdef HAVE_ZLIB
#include "dump_sink.h"

#include <errno.h>
#include <string.h>
#include <strings.h>
#include <zlib.h>

#include "error.h"

#define END_SIZE     22 /* of the record at the end, without its comment */
#define END64_SIZE   56
#define LOCATOR_SIZE 20
#define ENTRY_SIZE   46
#define LOCAL_SIZE   30
#define ENTRIES_MOST 65536

enum { METHOD_STORED = 0, METHOD_DEFLATED = 8 };

struct archive {
    struct sink *sink;
    const uint8_t *bytes;
    uint64_t length;
};

struct entry {
    const uint8_t *name;
    uint32_t name_length;
    uint32_t flags, method, crc;
    uint64_t packed, size, offset;
};

static uint64_t le(const uint8_t *at, unsigned int size)
{
    uint64_t value = 0;

    for (unsigned int i = size; i--;)
        value = value << 8 | at[i];
    return value;
}

static bool holds(const struct archive *a, uint64_t offset, uint64_t length)
{
    return offset <= a->length && length <= a->length - offset;
}

/* Finds the record at the end: nothing but a comment of its length follows it. */
static const uint8_t *find_end(const struct archive *a)
{
    for (uint64_t back = END_SIZE; back <= a->length && back <= END_SIZE + 0xffff; back++) {
        const uint8_t *at = a->bytes + a->length - back;

        if (!memcmp(at, "PK\005\006", 4) && le(at + 20, 2) == back - END_SIZE)
            return at;
    }
    return NULL;
}

/* Where the directory is, and how many entries it has. */
static bool find_directory(const struct archive *a, uint64_t *ret_at, uint64_t *ret_count)
{
    const uint8_t *end = find_end(a), *locator;
    uint64_t at;

    if (!end)
        return false;
    *ret_at = le(end + 16, 4);
    *ret_count = le(end + 10, 2);
    if (end - a->bytes < LOCATOR_SIZE || memcmp(end - LOCATOR_SIZE, "PK\006\007", 4))
        return true;
    locator = end - LOCATOR_SIZE;
    at = le(locator + 8, 8);
    if (!holds(a, at, END64_SIZE) || memcmp(a->bytes + at, "PK\006\006", 4))
        return false;
    *ret_at = le(a->bytes + at + 48, 8);
    *ret_count = le(a->bytes + at + 32, 8);
    return true;
}

/* What does not fit 32 bits is in an extra field, in this order. */
static void read_zip64(const uint8_t *extra, uint64_t length, struct entry *e)
{
    uint64_t *const values[] = {&e->size, &e->packed, &e->offset};

    while (length >= 4) {
        uint64_t size = le(extra + 2, 2);

        if (size > length - 4)
            return;
        for (unsigned int i = 0, at = 0; le(extra, 2) == 1 && i < 3; i++) {
            if (*values[i] != UINT32_MAX || at + 8 > size)
                continue;
            *values[i] = le(extra + 4 + at, 8);
            at += 8;
        }
        extra += 4 + size;
        length -= 4 + size;
    }
}

static bool read_entry(const struct archive *a, uint64_t *at, struct entry *ret)
{
    const uint8_t *bytes = a->bytes + *at;
    uint64_t name, extra, whole;

    if (!holds(a, *at, ENTRY_SIZE) || memcmp(bytes, "PK\001\002", 4))
        return false;
    name = le(bytes + 28, 2);
    extra = le(bytes + 30, 2);
    whole = ENTRY_SIZE + name + extra + le(bytes + 32, 2);
    if (!holds(a, *at, whole))
        return false;
    *ret = (struct entry){.name = bytes + ENTRY_SIZE,
                          .name_length = (uint32_t)name,
                          .flags = (uint32_t)le(bytes + 8, 2),
                          .method = (uint32_t)le(bytes + 10, 2),
                          .crc = (uint32_t)le(bytes + 16, 4),
                          .packed = le(bytes + 20, 4),
                          .size = le(bytes + 24, 4),
                          .offset = le(bytes + 42, 4)};
    read_zip64(bytes + ENTRY_SIZE + name, extra, ret);
    *at += whole;
    return true;
}

static bool is_named_dmp(const struct entry *e)
{
    return e->name_length > 4 &&
           !strncasecmp((const char *)e->name + e->name_length - 4, ".dmp", 4);
}

static bool is_folder(const struct entry *e)
{
    return !e->name_length || e->name[e->name_length - 1] == '/';
}

/* Chooses the one *.dmp, or the one file. */
static int choose(const struct archive *a, struct entry *ret)
{
    uint64_t at, count, files = 0, dumps = 0;
    struct sink *s = a->sink;

    if (!find_directory(a, &at, &count) || count > ENTRIES_MOST)
        return sink_damaged(s, "ZIP");
    for (uint64_t i = 0; i < count; i++) {
        struct entry e;

        if (!read_entry(a, &at, &e))
            return sink_damaged(s, "ZIP");
        if (is_folder(&e))
            continue;
        if (is_named_dmp(&e) ? !dumps : !files && !dumps)
            *ret = e;
        files++;
        dumps += is_named_dmp(&e);
    }
    if (dumps == 1 || (!dumps && files == 1))
        return 0;
    return prcb_fail(s->err, -EINVAL,
                     dumps ? "%s: a ZIP archive of %llu dumps; unpack it, and name its folder"
                           : "%s: a ZIP archive of %llu files, none of which is named *.dmp",
                     s->path, (unsigned long long)(dumps ? dumps : files));
}

static int take(struct sink *s, size_t length, uint32_t *crc)
{
    *crc = (uint32_t)crc32(*crc, s->buffer, (uInt)length);
    return sink_take(s, length);
}

static int copy_stored(struct sink *s, const uint8_t *bytes, uint64_t length, uint32_t *crc)
{
    int code = 0;

    for (uint64_t done = 0; done < length && !code;) {
        size_t part = length - done < SINK_CHUNK ? (size_t)(length - done) : SINK_CHUNK;

        memcpy(s->buffer, bytes + done, part);
        code = take(s, part, crc);
        done += part;
    }
    return code;
}

static int inflate_raw(struct sink *s, const uint8_t *bytes, uint64_t length, uint32_t *crc)
{
    z_stream stream = {0};
    uint64_t given = 0;
    int r = inflateInit2(&stream, -15), code = 0;

    while (r == Z_OK && !code) {
        uInt part = length - given < SINK_CHUNK ? (uInt)(length - given) : SINK_CHUNK;

        stream.next_in = (Bytef *)(uintptr_t)(bytes + given);
        stream.avail_in = part;
        stream.next_out = s->buffer;
        stream.avail_out = sizeof(s->buffer);
        r = inflate(&stream, Z_NO_FLUSH);
        given += part - stream.avail_in;
        code = take(s, sizeof(s->buffer) - stream.avail_out, crc);
    }
    inflateEnd(&stream);
    return code || r == Z_STREAM_END ? code : sink_damaged(s, "ZIP");
}

int dump_zip_unpack(struct sink *s, const uint8_t *bytes, size_t length)
{
    const struct archive a = {s, bytes, length};
    struct entry e = {0};
    uint64_t at;
    uint32_t crc = 0;
    int code = choose(&a, &e);

    if (code)
        return code;
    if (e.flags & 1)
        return prcb_fail(s->err, -EOPNOTSUPP, "%s: an encrypted ZIP archive; unpack it first",
                         s->path);
    if (e.method != METHOD_STORED && e.method != METHOD_DEFLATED)
        return prcb_fail(
            s->err, -EOPNOTSUPP,
            "%s: a ZIP archive packed by method %u; deflated and stored ones are read, "
            "unpack it first",
            s->path, e.method);
    if (!holds(&a, e.offset, LOCAL_SIZE) || memcmp(bytes + e.offset, "PK\003\004", 4))
        return sink_damaged(s, "ZIP");
    at = e.offset + LOCAL_SIZE + le(bytes + e.offset + 26, 2) + le(bytes + e.offset + 28, 2);
    if (!holds(&a, at, e.packed))
        return sink_damaged(s, "ZIP");
    code = (e.method == METHOD_STORED ? copy_stored : inflate_raw)(s, bytes + at, e.packed, &crc);
    return code || (s->length == e.size && crc == e.crc) ? code : sink_damaged(s, "ZIP");
}
#else
typedef int dump_zip_is_not_built;
#endif
