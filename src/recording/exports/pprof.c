/* SPDX-License-Identifier: BSD-2-Clause */
#include "pprof.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <protobuf-c/protobuf-c.h>
#include <zlib.h>

#include "pack.h"
#include "text.h"
#include "profile.pb-c.h"

/* Numbers of those of Profile's fields that are written one by one. */
enum field { SAMPLE_TYPE = 1, SAMPLE, MAPPING, LOCATION, FUNCTION, STRING };

struct pprof {
    FILE *out;
    z_stream zip;
    struct packer packer;
    bool plain;      /* not in gzip */
    int64_t strings; /* how many were written */
};

/* ---- bytes ----------------------------------------------------------------------- */

static void squeeze(struct pprof *p, const void *bytes, size_t count, int flush)
{
    uint8_t chunk[4096];

    if (p->plain) {
        fwrite(bytes, 1, count, p->out);
        return;
    }
    p->zip.next_in = (z_const Bytef *)bytes;
    p->zip.avail_in = (uInt)count;
    do {
        p->zip.next_out = chunk;
        p->zip.avail_out = sizeof(chunk);
        deflate(&p->zip, flush);
        fwrite(chunk, 1, sizeof(chunk) - p->zip.avail_out, p->out);
    } while (!p->zip.avail_out);
}

/* Writes a field of bytes: tag, length, content. */
static void put_bytes(struct pprof *p, enum field field, const void *bytes, size_t count)
{
    uint8_t head[PACK_HEAD];

    squeeze(p, head, pack_head(field, count, head), Z_NO_FLUSH);
    squeeze(p, bytes, count, Z_NO_FLUSH);
}

static void put(struct pprof *p, enum field field, const ProtobufCMessage *message)
{
    size_t size;
    const uint8_t *bytes = pack_message(&p->packer, message, &size);

    if (bytes)
        put_bytes(p, field, bytes, size);
}

int64_t pprof_string(struct pprof *p, const char *text)
{
    char *clean = text_utf8(text);

    if (!clean) {
        p->packer.failed = true;
        return 0;
    }
    put_bytes(p, STRING, clean, strlen(clean));
    free(clean);
    return p->strings++;
}

/* ---- the whole ------------------------------------------------------------------- */

int pprof_open(FILE *out, bool plain, struct pprof **ret)
{
    struct pprof *p = calloc(1, sizeof(*p));

    if (!p || deflateInit2(&p->zip, Z_DEFAULT_COMPRESSION, Z_DEFLATED, 15 + 16 /* gzip */, 8,
                           Z_DEFAULT_STRATEGY) != Z_OK) {
        free(p);
        return -ENOMEM;
    }
    p->out = out;
    p->plain = plain;
    pprof_string(p, "");
    *ret = p;
    return 0;
}

int pprof_close(struct pprof *p)
{
    int result = p->packer.failed ? -ENOMEM : 0;

    squeeze(p, "", 0, Z_FINISH);
    deflateEnd(&p->zip);
    free(p->packer.bytes);
    free(p);
    return result;
}

/* Writes fields that are not lists, or a list's element, as a message of their own: parts of a
 * message that are written one behind the other are one message. */
static void put_part(struct pprof *p, const Perftools__Profiles__Profile *part)
{
    size_t size;
    const uint8_t *bytes = pack_message(&p->packer, &part->base, &size);

    if (bytes)
        squeeze(p, bytes, size, Z_NO_FLUSH);
}

void pprof_comment(struct pprof *p, const char *text)
{
    Perftools__Profiles__Profile part = PERFTOOLS__PROFILES__PROFILE__INIT;
    int64_t place = pprof_string(p, text);

    part.n_comment = 1;
    part.comment = &place;
    put_part(p, &part);
}

void pprof_head(struct pprof *p, const struct pprof_head *head)
{
    Perftools__Profiles__Profile part = PERFTOOLS__PROFILES__PROFILE__INIT;
    Perftools__Profiles__ValueType period = PERFTOOLS__PROFILES__VALUE_TYPE__INIT;

    period.type = head->type.type;
    period.unit = head->type.unit;
    part.time_nanos = head->time_ns;
    part.duration_nanos = head->duration_ns;
    part.default_sample_type = head->type.type;
    part.period_type = &period;
    part.period = head->period;
    put_part(p, &part);
}

/* ---- rows ------------------------------------------------------------------------ */

struct pprof_type pprof_type(struct pprof *p, const char *type, const char *unit)
{
    Perftools__Profiles__ValueType row = PERFTOOLS__PROFILES__VALUE_TYPE__INIT;

    row.type = pprof_string(p, type);
    row.unit = pprof_string(p, unit);
    put(p, SAMPLE_TYPE, &row.base);
    return (struct pprof_type){row.type, row.unit};
}

void pprof_mapping(struct pprof *p, uint64_t number, const struct pprof_mapping *mapping)
{
    Perftools__Profiles__Mapping row = PERFTOOLS__PROFILES__MAPPING__INIT;

    row.id = number;
    row.memory_start = mapping->start;
    row.memory_limit = mapping->start + mapping->length;
    row.file_offset = mapping->file_offset;
    row.filename = pprof_string(p, mapping->file);
    row.build_id = pprof_string(p, mapping->build_id);
    row.has_functions = true;
    put(p, MAPPING, &row.base);
}

void pprof_function(struct pprof *p, uint64_t number, const char *name, const char *file)
{
    Perftools__Profiles__Function row = PERFTOOLS__PROFILES__FUNCTION__INIT;

    row.id = number;
    row.name = row.system_name = pprof_string(p, name);
    row.filename = pprof_string(p, file);
    put(p, FUNCTION, &row.base);
}

void pprof_location(struct pprof *p, uint64_t number, const struct pprof_location *location)
{
    Perftools__Profiles__Location row = PERFTOOLS__PROFILES__LOCATION__INIT;
    Perftools__Profiles__Line line = PERFTOOLS__PROFILES__LINE__INIT, *lines[] = {&line};

    row.id = number;
    row.mapping_id = location->mapping;
    row.address = location->address;
    line.function_id = location->function;
    line.line = location->line;
    if (location->function) {
        row.n_line = 1;
        row.line = lines;
    }
    put(p, LOCATION, &row.base);
}

int pprof_sample(struct pprof *p, const struct pprof_sample *sample)
{
    Perftools__Profiles__Sample row = PERFTOOLS__PROFILES__SAMPLE__INIT;
    Perftools__Profiles__Label labels[PPROF_LABELS], *places[PPROF_LABELS];

    row.location_id = sample->locations;
    row.n_location_id = sample->location_count;
    row.value = sample->values;
    row.n_value = sample->value_count;
    for (; row.n_label < sample->label_count && row.n_label < PPROF_LABELS; row.n_label++) {
        const struct pprof_label *from = &sample->labels[row.n_label];
        Perftools__Profiles__Label *label = places[row.n_label] = &labels[row.n_label];

        perftools__profiles__label__init(label);
        label->key = from->key;
        label->str = from->text;
        label->num = from->number;
    }
    row.label = places;
    put(p, SAMPLE, &row.base);
    return p->packer.failed ? -ENOMEM : 0;
}
