/* SPDX-License-Identifier: BSD-2-Clause */
#include "archive.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "error.h"
#include "export.h"
#include "json_stream.h"
#include "text.h"

#define BLOCK    512
#define MODE     0644
#define MANIFEST "perfetto_manifest.json"
#define SUFFIX   ".pftrace"

/* ustar, of POSIX.1: numbers are texts of octal digits. */
struct header {
    char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], checksum[8], type, link[100],
        magic[6], version[2], user[32], group[32], major[8], minor[8], prefix[155], fill[12];
};
_Static_assert(sizeof(struct header) == BLOCK, "a header is a block");

static void put_header(FILE *out, const char *name, uint64_t size)
{
    struct header header = {.type = '0', .magic = "ustar", .version = {'0', '0'}};
    unsigned sum = 0;

    memcpy(header.name, name, strnlen(name, sizeof(header.name) - 1));
    snprintf(header.mode, sizeof(header.mode), "%07o", MODE);
    snprintf(header.uid, sizeof(header.uid), "%07o", 0);
    snprintf(header.gid, sizeof(header.gid), "%07o", 0);
    snprintf(header.size, sizeof(header.size), "%011" PRIo64, size);
    snprintf(header.mtime, sizeof(header.mtime), "%011o", 0);
    memset(header.checksum, ' ', sizeof(header.checksum)); /* as it counts itself */
    for (size_t i = 0; i < sizeof(header); i++)
        sum += ((const unsigned char *)&header)[i];
    snprintf(header.checksum, sizeof(header.checksum), "%06o", sum);
    fwrite(&header, 1, sizeof(header), out);
}

static void put_zeros(FILE *out, uint64_t count)
{
    static const char zeros[2 * BLOCK];

    fwrite(zeros, 1, (size_t)count, out);
}

/* Writes a file that is there from its beginning. */
static int put_file(FILE *out, const char *name, FILE *from, struct prcb_error *err)
{
    char bytes[65536];
    off_t size = ftello(from);
    size_t got;

    if (size < 0 || fflush(from) || ferror(from))
        return prcb_fail(err, -EIO, "a temporary file: %s", strerror(errno));
    if (size >= (off_t)8 << 30)
        return prcb_fail(err, -EFBIG, "a trace of more than 8 GiB does not fit into an archive");
    rewind(from);
    put_header(out, name, (uint64_t)size);
    while ((got = fread(bytes, 1, sizeof(bytes), from)) > 0)
        fwrite(bytes, 1, got, out);
    put_zeros(out, (uint64_t)(-size & (BLOCK - 1)));
    return ferror(from) ? prcb_fail(err, -EIO, "a temporary file cannot be read") : 0;
}

static int put_trace(const struct archive *a, const char *name, const struct recording *recording,
                     struct prcb_error *err)
{
    FILE *trace = tmpfile();
    int result;

    if (!trace)
        return prcb_fail(err, -errno, "a temporary file: %s", strerror(errno));
    result = export_perfetto(recording, trace, err);
    if (!result)
        result = put_file(a->out, name, trace, err);
    fclose(trace);
    return result;
}

int archive_add(struct archive *a, const struct recording *recording, struct prcb_error *err)
{
    struct archived row = {.path = ""};
    char id[RECORDING_ID];
    int64_t wall_ns;

    recording_id(recording, id);
    snprintf(row.path, sizeof(row.path), "%s" SUFFIX, id);
    for (size_t i = 0; i < a->count; i++) {
        if (!strcmp(a->rows[i].path, row.path))
            return prcb_fail(err, -EEXIST, "the same recording is given twice");
    }
    if (!recording_wall(recording, &wall_ns))
        return prcb_fail(err, -ENODATA,
                         "it does not tell the time of day when it was begun, so it "
                         "cannot be put beside others");
    row.host = recording_fact(recording, "host");
    if (!row.host && !(row.host = strdup("")))
        return prcb_fail(err, -ENOMEM, "out of memory");
    if (array_add(a->rows, a->count, a->room, row)) {
        free(row.host);
        return prcb_fail(err, -ENOMEM, "out of memory");
    }
    return put_trace(a, row.path, recording, err);
}

/* Whether a recording of the same host is of another boot: its processes are others'. */
static bool booted_anew(const struct archive *a, const struct archived *row)
{
    size_t boot = strcspn(row->path, "-") + 1;

    for (size_t i = 0; i < a->count; i++) {
        if (!strcmp(a->rows[i].host, row->host) && strncmp(a->rows[i].path, row->path, boot) != 0)
            return true;
    }
    return false;
}

static int put_machine(const struct archive *a, const struct archived *row, struct json_stream *to)
{
    char *host = text_utf8(row->host), *name = host;
    int length = (int)strcspn(row->path, "-");

    if (host && booted_anew(a, row) &&
        asprintf(&name, "%s (boot %.*s)", host, length < 8 ? length : 8, row->path) < 0)
        name = NULL;
    json_stream_open(to, NULL, '{');
    json_stream_text(to, "path", row->path);
    json_stream_open(to, "machine", '{');
    json_stream_text(to, "name", name && *name ? name : row->path);
    json_stream_close(to, '}');
    json_stream_close(to, '}');
    if (name != host)
        free(name);
    free(host);
    return host && name ? 0 : -ENOMEM;
}

/* The timeline is that of the wall clock: those of other machines may begin later than what others
 * recorded, and what is before a timeline's beginning is not shown. */
static int put_manifest(const struct archive *a, FILE *out)
{
    struct json_stream to = {.out = out};
    int result = 0;

    json_stream_open(&to, NULL, '{');
    json_stream_open(&to, "perfetto_manifest", '{');
    json_stream_number(&to, "version", 1);
    json_stream_open(&to, "trace_time", '{');
    json_stream_text(&to, "clock", "REALTIME");
    json_stream_text(&to, "file", a->rows[0].path);
    json_stream_close(&to, '}');
    json_stream_open(&to, "files", '[');
    for (size_t i = 0; i < a->count && !result; i++)
        result = put_machine(a, &a->rows[i], &to);
    json_stream_close(&to, ']');
    json_stream_close(&to, '}');
    json_stream_close(&to, '}');
    return result;
}

int archive_end(struct archive *a)
{
    size_t size = 0;
    char *text = NULL;
    FILE *out = open_memstream(&text, &size);
    int result = out ? put_manifest(a, out) : -ENOMEM;

    if (out && fclose(out))
        result = -ENOMEM;
    if (!result) {
        put_header(a->out, MANIFEST, size);
        fwrite(text, 1, size, a->out);
        put_zeros(a->out, -size & (BLOCK - 1));
        put_zeros(a->out, 2ull * BLOCK);
    }
    free(text);
    return result;
}

void archive_free(struct archive *a)
{
    for (size_t i = 0; i < a->count; i++)
        free(a->rows[i].host);
    free(a->rows);
    *a = (struct archive){.out = NULL};
}
