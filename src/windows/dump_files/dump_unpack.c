/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Compressed files (by their first bytes, not their names) are unpacked into an unlinked temporary
 * file; runs of zeros become holes in it. A limit guards against bombs.
 */
#include "dump_sink.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#ifdef HAVE_LZMA
#include <lzma.h>
#endif
#ifdef HAVE_ZSTD
#include <zstd.h>
#endif
#ifdef HAVE_ZLIB
#include <zlib.h>
#endif
#ifdef HAVE_BZIP2
#include <bzlib.h>
#endif

#include "error.h"

#define DECODER_LIMIT (1024ull << 20) /* memory a decoder may take */

static _Atomic uint64_t unpacked; /* of all files, for who shows progress: no order is needed */

uint64_t dump_unpacked(void)
{
    return atomic_load_explicit(&unpacked, memory_order_relaxed);
}

static bool is_zero(const uint8_t *bytes, size_t length)
{
    return !length || (!bytes[0] && !memcmp(bytes, bytes + 1, length - 1));
}

int sink_take(struct sink *s, size_t length)
{
    size_t done = 0;

    if (length > s->limit - s->length)
        return prcb_fail(s->err, -EFBIG,
                         "%s: unpacks to more than %llu MiB; if you trust the file, raise "
                         "--unpack-limit",
                         s->path, (unsigned long long)(s->limit >> 20));
    while (!is_zero(s->buffer, length) && done < length) {
        ssize_t n = pwrite(s->fd, s->buffer + done, length - done, (off_t)(s->length + done));

        if (n < 0 && errno != EINTR)
            return prcb_fail(s->err, -errno, "%s: cannot write its unpacked bytes: %s (TMPDIR?)",
                             s->path, strerror(errno));
        done += n > 0 ? (size_t)n : 0;
    }
    s->length += length;
    atomic_fetch_add_explicit(&unpacked, length, memory_order_relaxed);
    return 0;
}

int sink_damaged(struct sink *s, const char *format)
{
    return prcb_fail(s->err, -EINVAL, "%s: the %s data are damaged or cut short", s->path, format);
}

#ifdef HAVE_LZMA
static int unpack_xz(struct sink *s, const uint8_t *bytes, size_t length)
{
    lzma_stream stream = LZMA_STREAM_INIT;
    lzma_ret r = lzma_stream_decoder(&stream, DECODER_LIMIT, LZMA_CONCATENATED);
    int code = 0;

    stream.next_in = bytes;
    stream.avail_in = length;
    while (r == LZMA_OK && !code) {
        stream.next_out = s->buffer;
        stream.avail_out = sizeof(s->buffer);
        r = lzma_code(&stream, LZMA_FINISH);
        code = sink_take(s, sizeof(s->buffer) - stream.avail_out);
    }
    lzma_end(&stream);
    return code || r == LZMA_STREAM_END ? code : sink_damaged(s, "xz");
}
#endif

#ifdef HAVE_ZSTD
static int unpack_zstd(struct sink *s, const uint8_t *bytes, size_t length)
{
    ZSTD_DStream *stream = ZSTD_createDStream();
    ZSTD_inBuffer in = {bytes, length, 0};
    size_t r = stream ? ZSTD_initDStream(stream) : 0;
    bool is_full = true; /* there may be more to come out */
    int code = stream ? 0 : prcb_fail(s->err, -ENOMEM, "%s: out of memory", s->path);

    /* r is 0 at a frame's end: what is full then has nothing more to come. */
    while (!code && !ZSTD_isError(r) && (in.pos < in.size || (r && is_full))) {
        ZSTD_outBuffer out = {s->buffer, sizeof(s->buffer), 0};

        r = ZSTD_decompressStream(stream, &out, &in);
        is_full = !ZSTD_isError(r) && out.pos == out.size;
        code = sink_take(s, out.pos);
    }
    ZSTD_freeDStream(stream);
    return code || !r ? code : sink_damaged(s, "zstd");
}
#endif

#ifdef HAVE_ZLIB
static int unpack_gzip(struct sink *s, const uint8_t *bytes, size_t length)
{
    z_stream stream = {0};
    size_t given = 0;
    int r = inflateInit2(&stream, 15 + 16), code = 0;

    while (r == Z_OK && !code) {
        uInt part = length - given < SINK_CHUNK ? (uInt)(length - given) : SINK_CHUNK;

        stream.next_in = (Bytef *)bytes + given;
        stream.avail_in = part;
        stream.next_out = s->buffer;
        stream.avail_out = sizeof(s->buffer);
        r = inflate(&stream, Z_NO_FLUSH);
        given += part - stream.avail_in;
        code = sink_take(s, sizeof(s->buffer) - stream.avail_out);
        if (r == Z_STREAM_END && given + 18 < length && bytes[given] == 0x1f) /* next member */
            r = inflateReset(&stream);
    }
    inflateEnd(&stream);
    return code || r == Z_STREAM_END ? code : sink_damaged(s, "gzip");
}
#endif

#ifdef HAVE_BZIP2
/* Streams may follow each other, as pbzip2 writes them. */
static int unpack_bzip2(struct sink *s, const uint8_t *bytes, size_t length)
{
    bz_stream stream = {0};
    size_t given = 0;
    int r = BZ2_bzDecompressInit(&stream, 0, 0), code = 0;

    while (r == BZ_OK && !code) {
        unsigned int part =
            length - given < SINK_CHUNK ? (unsigned int)(length - given) : SINK_CHUNK;

        stream.next_in = (char *)(uintptr_t)(bytes + given);
        stream.avail_in = part;
        stream.next_out = (char *)s->buffer;
        stream.avail_out = sizeof(s->buffer);
        r = BZ2_bzDecompress(&stream);
        given += part - stream.avail_in;
        code = sink_take(s, sizeof(s->buffer) - stream.avail_out);
        if (r == BZ_OK && !part && stream.avail_out)
            break; /* asks for more than there is */
        if (r == BZ_STREAM_END && given + 4 < length && bytes[given] == 'B') {
            BZ2_bzDecompressEnd(&stream);
            r = BZ2_bzDecompressInit(&stream, 0, 0);
        }
    }
    BZ2_bzDecompressEnd(&stream);
    return code || r == BZ_STREAM_END ? code : sink_damaged(s, "bzip2");
}
#endif

static const struct format {
    const char *name;
    uint8_t length;
    const char *magic;
    int (*unpack)(struct sink *s, const uint8_t *bytes, size_t length); /* NULL: not built in */
} formats[] = {
#ifdef HAVE_LZMA
    {"xz", 6, "\3757zXZ\0", unpack_xz},
#else
    {"xz", 6, "\3757zXZ\0", NULL},
#endif
#ifdef HAVE_ZSTD
    {"zstd", 4, "\x28\xb5\x2f\xfd", unpack_zstd},
#else
    {"zstd", 4, "\x28\xb5\x2f\xfd", NULL},
#endif
#ifdef HAVE_ZLIB
    {"gzip", 2, "\x1f\x8b", unpack_gzip},
    {"ZIP", 4, "PK\003\004", dump_zip_unpack},
#else
    {"gzip", 2, "\x1f\x8b", NULL},
    {"ZIP", 4, "PK\003\004", NULL},
#endif
#ifdef HAVE_BZIP2
    {"bzip2", 3, "BZh", unpack_bzip2},
#else
    {"bzip2", 3, "BZh", NULL},
#endif
};

static const struct format *find_format(int fd)
{
    char head[8] = {0};
    ssize_t n = pread(fd, head, sizeof(head), 0);

    for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
        if (n >= formats[i].length && !memcmp(head, formats[i].magic, formats[i].length))
            return &formats[i];
    }
    return NULL;
}

static int open_temporary(const char *path, int *ret, struct prcb_error *err)
{
    const char *dir = getenv("TMPDIR");
    char name[512];
    int fd;

    if (!dir || !*dir)
        dir = "/tmp";
    fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd < 0) {
        snprintf(name, sizeof(name), "%s/prcb-dump-XXXXXX", dir);
        fd = mkostemp(name, O_CLOEXEC);
        if (fd >= 0)
            unlink(name);
    }
    if (fd < 0)
        return prcb_fail(err, -errno, "%s: no room to unpack in %s: %s", path, dir,
                         strerror(errno));
    *ret = fd;
    return 0;
}

static int unpack_to(struct sink *s, const struct format *format, int fd)
{
    struct stat st;
    void *bytes;
    int code;

    if (fstat(fd, &st))
        return prcb_fail(s->err, -errno, "%s: %s", s->path, strerror(errno));
    bytes = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (bytes == MAP_FAILED)
        return prcb_fail(s->err, -errno, "%s: cannot map the file: %s", s->path, strerror(errno));
    code = format->unpack(s, bytes, (size_t)st.st_size);
    munmap(bytes, (size_t)st.st_size);
    if (!code && ftruncate(s->fd, (off_t)s->length))
        code = prcb_fail(s->err, -errno, "%s: cannot size its unpacked bytes: %s", s->path,
                         strerror(errno));
    return code;
}

static int unpack(const char *path, uint64_t limit, int fd, const struct format *format,
                  int *ret_fd, struct prcb_error *err)
{
    struct sink *s;
    int code;

    if (!format->unpack)
        return prcb_fail(err, -EOPNOTSUPP,
                         "%s: %s-compressed, and this prcb was built without %s; unpack it first",
                         path, format->name, format->name);
    s = malloc(sizeof(*s));
    if (!s)
        return prcb_fail(err, -ENOMEM, "%s: out of memory", path);
    s->length = 0;
    s->limit = limit;
    s->path = path;
    s->err = err;
    code = open_temporary(path, &s->fd, err);
    if (!code) {
        code = unpack_to(s, format, fd);
        if (code)
            close(s->fd);
        else
            *ret_fd = s->fd;
    }
    free(s);
    return code;
}

int dump_unpack(const char *path, uint64_t limit, int *ret_fd, struct prcb_error *err)
{
    const struct format *format;
    struct stat st;
    int fd, code;

    /* Some devices act when they are opened. */
    if (!stat(path, &st) && S_ISCHR(st.st_mode))
        return prcb_fail(err, -EINVAL, "%s: not a regular file; copy the dump to one", path);
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* never wait on a fifo */
    if (fd < 0)
        return prcb_fail(err, -errno, "%s: cannot open: %s", path, strerror(errno));
    format = find_format(fd);
    if (!format) {
        *ret_fd = fd;
        return 0;
    }
    code = unpack(path, limit, fd, format, ret_fd, err);
    close(fd);
    return code;
}
