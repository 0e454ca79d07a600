/* SPDX-License-Identifier: BSD-2-Clause */
#include "otlp.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include <protobuf-c/protobuf-c.h>

#include "array.h"
#include "otlp.pb-c.h"
#include "pack.h"
#include "pprof.h"
#include "text.h"
#include "profile.pb-c.h"
#include "table.h"

/* Numbers of fields that are written one by one. */
enum { REQUEST_RESOURCE_PROFILES = 1, REQUEST_DICTIONARY };
enum { RESOURCE_RESOURCE = 1, RESOURCE_SCOPE_PROFILES };
enum { SCOPE_SCOPE = 1, SCOPE_PROFILES };
enum { PROFILE_SAMPLES = 2 };
enum table_field { MAPPINGS = 1, LOCATIONS, FUNCTIONS, LINKS, STRINGS, ATTRIBUTES, STACKS, TABLES };

/* What labels of profiles are called there: by its conventions for names, where these have one. */
static const struct {
    const char *label, *name;
} label_names[] = {
    {"thread", "thread.name"},     {"pid", "process.pid"}, {"cgroup", "process.linux.cgroup"},
    {"container", "container.id"}, {"pod", "k8s.pod.uid"},
};
static const char *const comment_names[] = {"prcb.totals", "prcb.note"};

struct part {
    FILE *stream;
    char *bytes;
    size_t size;
};

struct making {
    struct packer packer;
    struct part dictionary, scope;
    struct row_numbers rows[TABLES];
    bool failed; /* no memory */
};

/* The profile that is read, and the rows of its tables by their places in it. */
struct reading {
    const Perftools__Profiles__Profile *from;
    int32_t *strings, *mappings, *functions, *locations, *stack, *attributes;
    size_t stack_room, attribute_room;
    bool bad; /* it refers to what it has not */
};

/* ---- bytes ----------------------------------------------------------------------- */

static void put_bytes(FILE *out, unsigned field, const void *bytes, size_t size)
{
    uint8_t head[PACK_HEAD];

    fwrite(head, 1, pack_head(field, size, head), out);
    fwrite(bytes, 1, size, out);
}

static void put(struct making *m, FILE *out, unsigned field, const ProtobufCMessage *message)
{
    size_t size;
    const uint8_t *bytes = pack_message(&m->packer, message, &size);

    if (bytes)
        put_bytes(out, field, bytes, size);
}

/* Returns the place of a row of the dictionary, where it is written unless it is there. */
static int32_t put_row(struct making *m, enum table_field table, const ProtobufCMessage *message)
{
    size_t size, number;
    const uint8_t *bytes = pack_message(&m->packer, message, &size);
    bool fresh = false;

    number = bytes ? row_number(&m->rows[table], bytes, size, &fresh) : 0;
    if (fresh)
        put_bytes(m->dictionary.stream, table, bytes, size);
    m->failed |= !number;
    return number ? (int32_t)(number - 1) : 0;
}

static int32_t put_string(struct making *m, const char *text)
{
    bool fresh = false;
    size_t length = strlen(text), number = row_number(&m->rows[STRINGS], text, length, &fresh);

    if (fresh)
        put_bytes(m->dictionary.stream, STRINGS, text, length);
    m->failed |= !number;
    return number ? (int32_t)(number - 1) : 0;
}

/* The first row of each table stands for none. */
static void put_first_rows(struct making *m)
{
    Otlp__Mapping mapping = OTLP__MAPPING__INIT;
    Otlp__Location location = OTLP__LOCATION__INIT;
    Otlp__Function function = OTLP__FUNCTION__INIT;
    Otlp__Link link = OTLP__LINK__INIT;
    Otlp__KeyValueAndUnit attribute = OTLP__KEY_VALUE_AND_UNIT__INIT;
    Otlp__Stack stack = OTLP__STACK__INIT;

    put_row(m, MAPPINGS, &mapping.base);
    put_row(m, LOCATIONS, &location.base);
    put_row(m, FUNCTIONS, &function.base);
    put_row(m, LINKS, &link.base);
    put_string(m, "");
    put_row(m, ATTRIBUTES, &attribute.base);
    put_row(m, STACKS, &stack.base);
}

/* ---- tables ---------------------------------------------------------------------- */

/* Returns what stands at a place, which came from the profile. */
static int32_t at(struct reading *r, const int32_t *rows, size_t count, uint64_t place)
{
    if (place < count)
        return rows[place];
    r->bad = true;
    return 0;
}

static int32_t string_at(struct reading *r, int64_t place)
{
    return at(r, r->strings, r->from->n_string_table, (uint64_t)place);
}

/* Rows of these profiles are numbered from 1 on, in their order. */
static int32_t row_at(struct reading *r, const int32_t *rows, size_t count, uint64_t number)
{
    return number ? at(r, rows, count, number - 1) : 0;
}

static void read_strings(struct making *m, struct reading *r)
{
    for (size_t i = 0; i < r->from->n_string_table; i++)
        r->strings[i] = put_string(m, r->from->string_table[i]);
}

static void read_mappings(struct making *m, struct reading *r)
{
    for (size_t i = 0; i < r->from->n_mapping; i++) {
        const Perftools__Profiles__Mapping *from = r->from->mapping[i];
        Otlp__Mapping row = OTLP__MAPPING__INIT;

        row.memory_start = from->memory_start;
        row.memory_limit = from->memory_limit;
        row.file_offset = from->file_offset;
        row.filename_strindex = string_at(r, from->filename);
        r->bad |= from->id != i + 1;
        r->mappings[i] = put_row(m, MAPPINGS, &row.base);
    }
}

static void read_functions(struct making *m, struct reading *r)
{
    for (size_t i = 0; i < r->from->n_function; i++) {
        const Perftools__Profiles__Function *from = r->from->function[i];
        Otlp__Function row = OTLP__FUNCTION__INIT;

        row.name_strindex = string_at(r, from->name);
        row.system_name_strindex = string_at(r, from->system_name);
        row.filename_strindex = string_at(r, from->filename);
        r->bad |= from->id != i + 1;
        r->functions[i] = put_row(m, FUNCTIONS, &row.base);
    }
}

static void read_locations(struct making *m, struct reading *r)
{
    for (size_t i = 0; i < r->from->n_location; i++) {
        const Perftools__Profiles__Location *from = r->from->location[i];
        Otlp__Location row = OTLP__LOCATION__INIT;
        Otlp__Line line = OTLP__LINE__INIT, *lines[] = {&line};

        row.mapping_index = row_at(r, r->mappings, r->from->n_mapping, from->mapping_id);
        row.address = from->address;
        if (from->n_line) {
            line.function_index =
                row_at(r, r->functions, r->from->n_function, from->line[0]->function_id);
            line.line = from->line[0]->line;
            row.n_lines = 1;
            row.lines = lines;
        }
        r->bad |= from->id != i + 1;
        r->locations[i] = put_row(m, LOCATIONS, &row.base);
    }
}

/* ---- samples --------------------------------------------------------------------- */

static int32_t put_attribute(struct making *m, const char *name, Otlp__AnyValue *value)
{
    Otlp__KeyValueAndUnit row = OTLP__KEY_VALUE_AND_UNIT__INIT;

    row.key_strindex = put_string(m, name);
    row.value = value;
    return put_row(m, ATTRIBUTES, &row.base);
}

static int32_t put_text(struct making *m, const char *name, const char *text)
{
    Otlp__AnyValue value = OTLP__ANY_VALUE__INIT;

    value.value_case = OTLP__ANY_VALUE__VALUE_STRING_VALUE;
    value.string_value = (char *)text;
    return put_attribute(m, name, &value);
}

/* The label's texts are there. */
static int32_t put_label(struct making *m, const struct reading *r,
                         const Perftools__Profiles__Label *label)
{
    Otlp__AnyValue value = OTLP__ANY_VALUE__INIT;
    const char *key = r->from->string_table[label->key];
    char name[64];

    snprintf(name, sizeof(name), "prcb.%s", key);
    for (size_t i = 0; i < sizeof(label_names) / sizeof(*label_names); i++) {
        if (!strcmp(label_names[i].label, key))
            snprintf(name, sizeof(name), "%s", label_names[i].name);
    }
    if (label->str)
        return put_text(m, name, r->from->string_table[label->str]);
    value.value_case = OTLP__ANY_VALUE__VALUE_INT_VALUE;
    value.int_value = label->num;
    return put_attribute(m, name, &value);
}

/* Reads `size` bytes as hexadecimal digits. Returns false if the text is something else. */
static bool read_digits(const char *text, size_t size, uint8_t *ret)
{
    if (strlen(text) != 2 * size || text[strspn(text, "0123456789abcdef")])
        return false;
    for (size_t i = 0; i < size; i++) {
        const char digits[] = {text[2 * i], text[2 * i + 1], '\0'};

        ret[i] = (uint8_t)strtoul(digits, NULL, 16);
    }
    return true;
}

/* Returns the text of a label if it is that; NULL: it is another. */
static const char *text_if(const struct reading *r, const Perftools__Profiles__Label *label,
                           const char *key)
{
    char **texts = r->from->string_table;

    return strcmp(texts[label->key], key) != 0 ? NULL : texts[label->str];
}

/* A span has both labels: they are a link, and no attributes. Returns its row; 0: there is none. */
static int32_t put_link(struct making *m, const struct reading *r,
                        const Perftools__Profiles__Sample *from)
{
    Otlp__Link link = OTLP__LINK__INIT;
    uint8_t trace[16], span[8];

    for (size_t i = 0; i < from->n_label; i++) {
        const char *trace_text = text_if(r, from->label[i], PPROF_TRACE_LABEL);
        const char *span_text = text_if(r, from->label[i], PPROF_SPAN_LABEL);

        if (trace_text && read_digits(trace_text, sizeof(trace), trace))
            link.trace_id = (ProtobufCBinaryData){sizeof(trace), trace};
        if (span_text && read_digits(span_text, sizeof(span), span))
            link.span_id = (ProtobufCBinaryData){sizeof(span), span};
    }
    return link.trace_id.len && link.span_id.len ? put_row(m, LINKS, &link.base) : 0;
}

static bool is_of_link(const struct reading *r, const Perftools__Profiles__Label *label)
{
    return text_if(r, label, PPROF_TRACE_LABEL) || text_if(r, label, PPROF_SPAN_LABEL);
}

static void read_sample(struct making *m, struct reading *r, FILE *out,
                        const Perftools__Profiles__Sample *from)
{
    Otlp__Sample row = OTLP__SAMPLE__INIT;
    Otlp__Stack stack = OTLP__STACK__INIT;

    if (array_reserve(r->stack, (size_t)0, r->stack_room, from->n_location_id) ||
        array_reserve(r->attributes, (size_t)0, r->attribute_room, from->n_label)) {
        m->failed = true;
        return;
    }
    for (size_t i = 0; i < from->n_location_id; i++)
        r->stack[i] = row_at(r, r->locations, r->from->n_location, from->location_id[i]);
    for (size_t i = 0; i < from->n_label; i++) {
        string_at(r, from->label[i]->key);
        string_at(r, from->label[i]->str);
    }
    if (r->bad)
        return;
    row.link_index = put_link(m, r, from);
    for (size_t i = 0; i < from->n_label; i++) {
        if (!row.link_index || !is_of_link(r, from->label[i]))
            r->attributes[row.n_attribute_indices++] = put_label(m, r, from->label[i]);
    }
    stack.n_location_indices = from->n_location_id;
    stack.location_indices = r->stack;
    row.stack_index = put_row(m, STACKS, &stack.base);
    row.attribute_indices = r->attributes;
    row.n_values = from->n_value;
    row.values = from->value;
    r->bad |= from->n_value != 1;
    put(m, out, PROFILE_SAMPLES, &row.base);
}

static void put_type(struct reading *r, const Perftools__Profiles__ValueType *from,
                     Otlp__ValueType *ret)
{
    *ret = (Otlp__ValueType)OTLP__VALUE_TYPE__INIT;
    ret->type_strindex = string_at(r, from->type);
    ret->unit_strindex = string_at(r, from->unit);
}

/* Writes what is there once; samples follow it. */
static void put_head(struct making *m, struct reading *r, FILE *out)
{
    const Perftools__Profiles__Profile *from = r->from;
    int32_t comments[sizeof(comment_names) / sizeof(*comment_names)];
    Otlp__Profile row = OTLP__PROFILE__INIT;
    Otlp__ValueType type, period;
    uint8_t id[16];
    size_t size;
    const uint8_t *bytes;

    put_type(r, from->sample_type[0], &type);
    put_type(r, from->period_type, &period);
    row.sample_type = &type;
    row.period_type = &period;
    row.period = from->period;
    row.time_unix_nano = (uint64_t)from->time_nanos;
    row.duration_nano = (uint64_t)from->duration_nanos;
    if (getrandom(id, sizeof(id), 0) == sizeof(id))
        row.profile_id = (ProtobufCBinaryData){sizeof(id), id};
    for (; row.n_attribute_indices < from->n_comment &&
           row.n_attribute_indices < sizeof(comments) / sizeof(*comments);
         row.n_attribute_indices++) {
        size_t i = row.n_attribute_indices;

        string_at(r, from->comment[i]);
        comments[i] =
            r->bad ? 0 : put_text(m, comment_names[i], from->string_table[from->comment[i]]);
    }
    row.attribute_indices = comments;
    bytes = pack_message(&m->packer, &row.base, &size);
    if (bytes)
        fwrite(bytes, 1, size, out);
}

/* ---- the whole ------------------------------------------------------------------- */

static int open_part(struct part *part)
{
    part->stream = open_memstream(&part->bytes, &part->size);
    return part->stream ? 0 : -ENOMEM;
}

/* Ends the stream; the bytes stay. */
static int end_part(struct part *part)
{
    int result = 0;

    if (part->stream)
        result = fclose(part->stream) ? -ENOMEM : 0;
    part->stream = NULL;
    return result;
}

static void free_part(struct part *part)
{
    end_part(part);
    free(part->bytes);
}

static int32_t *rows_for(size_t count)
{
    return calloc(count + 1, sizeof(int32_t));
}

static int read_profile(struct making *m, struct reading *r)
{
    const Perftools__Profiles__Profile *from = r->from;
    struct part part = {0};
    int result = 0;

    r->strings = rows_for(from->n_string_table);
    r->mappings = rows_for(from->n_mapping);
    r->functions = rows_for(from->n_function);
    r->locations = rows_for(from->n_location);
    if (!r->strings || !r->mappings || !r->functions || !r->locations || open_part(&part))
        return -ENOMEM;
    read_strings(m, r);
    read_mappings(m, r);
    read_functions(m, r);
    read_locations(m, r);
    if (from->n_sample_type != 1 || !from->period_type || !from->n_string_table)
        r->bad = true;
    else
        put_head(m, r, part.stream);
    for (size_t i = 0; i < from->n_sample && !r->bad && !m->failed; i++)
        read_sample(m, r, part.stream, from->sample[i]);
    result = end_part(&part);
    if (!result)
        put_bytes(m->scope.stream, SCOPE_PROFILES, part.bytes, part.size);
    free_part(&part);
    return r->bad ? -EINVAL : result;
}

static int add_profile(struct making *m, const struct otlp_profile *profile)
{
    Perftools__Profiles__Profile *from =
        perftools__profiles__profile__unpack(NULL, profile->size, profile->bytes);
    struct reading r = {.from = from};
    int result = from ? read_profile(m, &r) : -EINVAL;

    free(r.strings);
    free(r.mappings);
    free(r.functions);
    free(r.locations);
    free(r.stack);
    free(r.attributes);
    if (from)
        perftools__profiles__profile__free_unpacked(from, NULL);
    return result;
}

static void put_scope(struct making *m)
{
    Otlp__Scope scope = OTLP__SCOPE__INIT;

    scope.name = (char *)"prcb";
    scope.version = (char *)PRCB_VERSION;
    put(m, m->scope.stream, SCOPE_SCOPE, &scope.base);
}

static void put_resource(struct making *m, const struct otlp_request *request, FILE *out)
{
    const char *const keys[] = {"service.name", "host.name"}, *const values[] = {request->service,
                                                                                 request->host};
    Otlp__Resource resource = OTLP__RESOURCE__INIT;
    Otlp__KeyValue rows[2], *places[2];
    Otlp__AnyValue texts[2];

    for (size_t i = 0; i < 2; i++) {
        rows[i] = (Otlp__KeyValue)OTLP__KEY_VALUE__INIT;
        texts[i] = (Otlp__AnyValue)OTLP__ANY_VALUE__INIT;
        texts[i].value_case = OTLP__ANY_VALUE__VALUE_STRING_VALUE;
        texts[i].string_value = text_utf8(values[i]);
        m->failed |= !texts[i].string_value;
        rows[i].key = (char *)keys[i];
        rows[i].value = &texts[i];
        places[i] = &rows[i];
    }
    resource.n_attributes = 2;
    resource.attributes = places;
    if (!m->failed)
        put(m, out, RESOURCE_RESOURCE, &resource.base);
    free(texts[0].string_value);
    free(texts[1].string_value);
}

static int put_together(struct making *m, const struct otlp_request *request, char **ret,
                        size_t *ret_size)
{
    struct part resource = {0}, whole = {0};
    int result = end_part(&m->dictionary) | end_part(&m->scope) | open_part(&resource);

    if (!result) {
        put_resource(m, request, resource.stream);
        put_bytes(resource.stream, RESOURCE_SCOPE_PROFILES, m->scope.bytes, m->scope.size);
        result = end_part(&resource) | open_part(&whole);
    }
    if (!result) {
        put_bytes(whole.stream, REQUEST_RESOURCE_PROFILES, resource.bytes, resource.size);
        put_bytes(whole.stream, REQUEST_DICTIONARY, m->dictionary.bytes, m->dictionary.size);
        result = end_part(&whole);
    }
    free_part(&resource);
    if (result || m->failed || m->packer.failed) {
        free_part(&whole);
        return -ENOMEM;
    }
    *ret = whole.bytes;
    *ret_size = whole.size;
    return 0;
}

int otlp_make(const struct otlp_request *request, char **ret, size_t *ret_size)
{
    struct making m = {.failed = false};
    int result = open_part(&m.dictionary) | open_part(&m.scope);

    if (!result) {
        put_first_rows(&m);
        put_scope(&m);
    }
    for (size_t i = 0; i < request->count && !result; i++)
        result = add_profile(&m, &request->profiles[i]);
    if (!result)
        result = put_together(&m, request, ret, ret_size);
    free_part(&m.dictionary);
    free_part(&m.scope);
    for (size_t i = 0; i < TABLES; i++)
        row_numbers_free(&m.rows[i]);
    free(m.packer.bytes);
    return result;
}

int otlp_read_answer(const void *bytes, size_t size, struct otlp_answer *ret)
{
    Otlp__ExportProfilesServiceResponse *answer =
        otlp__export_profiles_service_response__unpack(NULL, size, bytes);
    const Otlp__ExportProfilesPartialSuccess *part = answer ? answer->partial_success : NULL;

    if (!answer)
        return -EINVAL;
    *ret = (struct otlp_answer){.rejected = 0};
    if (part) {
        ret->rejected = part->rejected_profiles > 0 ? (uint64_t)part->rejected_profiles : 0;
        snprintf(ret->text, sizeof(ret->text), "%s", part->error_message);
    }
    otlp__export_profiles_service_response__free_unpacked(answer, NULL);
    return 0;
}
