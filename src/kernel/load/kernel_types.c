/* SPDX-License-Identifier: BSD-2-Clause */
#include "kernel_types.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/btf.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/utsname.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bpf/btf.h>
#include <bpf/libbpf.h>

#include "array.h"
#include "error.h"
#include "read_file.h"

const char *kernel_types_source = "/sys/kernel/btf/vmlinux";

#define PERCPU ".data..percpu"

/* ---- the kernel's types, as they lie in the file ---- */

struct source {
    uint8_t *bytes;
    size_t size;
    bool mapped;
    const uint8_t *types;
    const char *strings;
    uint32_t types_size, strings_size;
    uint32_t *offsets; /* by id, from 1 on */
    uint32_t count, room;
};

static int copy_whole(int fd, struct source *ret)
{
    ssize_t got;

    ret->bytes = malloc(ret->size);
    if (!ret->bytes)
        return -ENOMEM;
    got = read_full(fd, ret->bytes, ret->size);
    return got < 0 ? (int)got : (size_t)got == ret->size ? 0 : -EIO;
}

/* The file is mapped where the kernel allows it (6.16), which saves copying five megabytes. */
static int source_read(struct source *ret)
{
    int fd = open(kernel_types_source, O_RDONLY | O_CLOEXEC), result = 0;
    struct stat st;
    void *at;

    if (fd < 0)
        return -errno;
    if (fstat(fd, &st)) {
        result = -errno;
    } else {
        ret->size = (size_t)st.st_size;
        at = mmap(NULL, ret->size, PROT_READ, MAP_PRIVATE, fd, 0);
        ret->mapped = at != MAP_FAILED;
        if (ret->mapped)
            ret->bytes = at;
        else
            result = copy_whole(fd, ret);
    }
    close(fd);
    return result;
}

static void source_free(struct source *s)
{
    if (s->mapped)
        munmap(s->bytes, s->size);
    else
        free(s->bytes);
    free(s->offsets);
}

static int source_parse(struct source *s)
{
    const struct btf_header *header = (const void *)s->bytes;
    uint64_t end;

    if (s->size < sizeof(*header) || header->magic != BTF_MAGIC || header->version != BTF_VERSION ||
        ((uint64_t)header->hdr_len + header->type_off) % 4)
        return -EBADMSG;
    end = (uint64_t)header->hdr_len + header->type_off + header->type_len;
    if (end > s->size || (uint64_t)header->hdr_len + header->str_off + header->str_len > s->size)
        return -EBADMSG;
    s->types = s->bytes + header->hdr_len + header->type_off;
    s->types_size = header->type_len;
    s->strings = (const char *)s->bytes + header->hdr_len + header->str_off;
    s->strings_size = header->str_len;
    return s->strings_size && !s->strings[s->strings_size - 1] ? 0 : -EBADMSG;
}

/* Returns the bytes behind a type's common part; -1: this library does not know the kind. */
static int64_t extra_bytes(const struct btf_type *type)
{
    switch (btf_kind(type)) {
    case BTF_KIND_PTR:
    case BTF_KIND_FWD:
    case BTF_KIND_TYPEDEF:
    case BTF_KIND_VOLATILE:
    case BTF_KIND_CONST:
    case BTF_KIND_RESTRICT:
    case BTF_KIND_FUNC:
    case BTF_KIND_FLOAT:
    case BTF_KIND_TYPE_TAG:
        return 0;
    case BTF_KIND_INT:
    case BTF_KIND_VAR:
    case BTF_KIND_DECL_TAG:
        return 4;
    case BTF_KIND_ARRAY:
        return sizeof(struct btf_array);
    case BTF_KIND_STRUCT:
    case BTF_KIND_UNION:
    case BTF_KIND_DATASEC:
    case BTF_KIND_ENUM64:
        return btf_vlen(type) * 12;
    case BTF_KIND_ENUM:
    case BTF_KIND_FUNC_PROTO:
        return btf_vlen(type) * 8;
    default:
        return -1;
    }
}

static const struct btf_type *type_at(const struct source *s, uint32_t id)
{
    return (const void *)(s->types + s->offsets[id]);
}

static const char *string_at(const struct source *s, uint32_t offset)
{
    return s->strings + (offset < s->strings_size ? offset : 0);
}

static int add_offset(struct source *s, uint32_t offset)
{
    if (array_reserve(s->offsets, s->count + 1, s->room, 1))
        return -ENOMEM;
    s->offsets[++s->count] = offset;
    return 0;
}

/* ---- wanted names ---- */

#define NAMES_ROOM 1024 /* a power of 2, some times as many as there are */

struct name {
    const char *text;
    size_t length;
};

static uint32_t hash_of(const char *text, size_t length)
{
    uint32_t hash = 2166136261u; /* FNV-1a */

    for (size_t i = 0; i < length; i++)
        hash = (hash ^ (uint8_t)text[i]) * 16777619u;
    return hash;
}

static const struct name *name_slot(const struct name *names, const char *text, size_t length)
{
    uint32_t at = hash_of(text, length) % NAMES_ROOM;

    while (names[at].text && (names[at].length != length || memcmp(names[at].text, text, length)))
        at = (at + 1) % NAMES_ROOM;
    return &names[at];
}

static int want(struct name *names, uint32_t *count, const char *text, size_t length)
{
    struct name *slot = (struct name *)name_slot(names, text, length);

    if (slot->text)
        return 0;
    if (++*count > NAMES_ROOM / 2)
        return -E2BIG;
    *slot = (struct name){text, length};
    return 0;
}

/* Wants the names of the object's own types: what follows "___" tells apart what prcb calls
 * them. */
static int want_all(struct name *names, const struct btf *own, const char *const *more)
{
    uint32_t count = 0;
    int result = 0;

    for (__u32 i = 1; !result && i < btf__type_cnt(own); i++) {
        const struct btf_type *type = btf__type_by_id(own, i);
        const char *text = btf__name_by_offset(own, type->name_off);
        const char *end = text ? strstr(text, "___") : NULL;

        if ((btf_is_composite(type) || btf_is_any_enum(type)) && text && *text)
            result = want(names, &count, text, end ? (size_t)(end - text) : strlen(text));
    }
    for (; !result && *more; more++)
        result = want(names, &count, *more, strlen(*more));
    return result;
}

/* ---- picking out ---- */

struct picked {
    uint32_t *ids;   /* by the kernel's id; 0: not picked */
    uint32_t *order; /* the reverse */
    uint32_t count;
    uint32_t section; /* the kernel's id of the per-processor variables; 0: none */
    uint8_t *types;
    char *strings;
    size_t types_size, types_room, strings_size, strings_room;
};

static void pick(struct picked *p, const struct source *s, uint32_t id)
{
    if (!id || id > s->count || p->ids[id])
        return;
    p->ids[id] = ++p->count;
    p->order[p->count] = id;
}

/* ---- what programs are attached to ---- */

#define TRACEPOINT "btf_trace_" /* a typedef */
#define ITERATOR   "bpf_iter_"  /* a function */
#define CAST       "bpf_rdonly_cast"
#define TASK       "task_struct"

/* Returns the name behind a prefix; NULL: it has another. Most names differ in the first byte. */
static const char *behind(const char *text, const char *prefix)
{
    while (*prefix && *text == *prefix) {
        text++;
        prefix++;
    }
    return *prefix ? NULL : text;
}

static int want_targets(struct kernel_types *t, const struct bpf_object *object)
{
    struct bpf_program *program;

    bpf_object__for_each_program(program, object)
    {
        const char *section = bpf_program__section_name(program);
        const char *iterator = behind(section, "prcb_iter/");
        const char *name = iterator ? iterator : behind(section, "prcb_tp/");

        if (!name)
            continue;
        if (t->target_count == KERNEL_TARGETS)
            return -E2BIG;
        t->targets[t->target_count++] = (struct kernel_target){.name = name, .iterator = iterator};
    }
    return 0;
}

/* Takes note of the kernel's type `id` if a program is attached to it; the first of a name counts.
 */
static void note_target(struct kernel_types *t, const struct btf_type *type, const char *text,
                        uint32_t id)
{
    bool iterator = btf_is_func(type);
    const char *name = behind(text, iterator ? ITERATOR : TRACEPOINT);

    for (unsigned i = 0; name && i < t->target_count; i++) {
        struct kernel_target *target = &t->targets[i];

        if (target->iterator == iterator && !target->id && !strcmp(target->name, name))
            target->id = id;
    }
}

uint32_t kernel_types_target(const struct kernel_types *t, const char *name, bool iterator)
{
    for (unsigned i = 0; i < t->target_count; i++) {
        if (t->targets[i].iterator == iterator && !strcmp(t->targets[i].name, name))
            return t->targets[i].id;
    }
    return 0;
}

/* Makes one pass over all of the kernel's types. */
static int find_named(struct kernel_types *t, struct source *s, const struct name *names,
                      uint32_t **ret, uint32_t *ret_count, uint32_t *ret_section)
{
    uint32_t at = 0;

    while (at < s->types_size) {
        const struct btf_type *type = (const void *)(s->types + at);
        uint32_t left = s->types_size - at;
        const char *text;
        int64_t extra;

        if (left < sizeof(*type))
            return -EBADMSG;
        extra = extra_bytes(type);
        if (extra < 0 || left - sizeof(*type) < (uint64_t)extra)
            return -EBADMSG;
        if (add_offset(s, at))
            return -ENOMEM;
        at += (uint32_t)(sizeof(*type) + (size_t)extra);
        if (!type->name_off)
            continue;
        text = string_at(s, type->name_off);
        if (btf_is_func(type) || btf_is_typedef(type))
            note_target(t, type, text, s->count);
        if (btf_is_func(type)) {
            const char *rest = t->cast ? NULL : behind(text, CAST);

            if (rest && !*rest)
                t->cast = s->count;
            continue;
        }
        if (btf_is_datasec(type) && !strcmp(text, PERCPU))
            *ret_section = s->count;
        if (!name_slot(names, text, strlen(text))->text)
            continue;
        if (btf_is_struct(type) && !t->task && !strcmp(text, TASK))
            t->task = s->count;
        if (array_append(*ret, *ret_count, s->count))
            return -ENOMEM;
    }
    return 0;
}

uint32_t kernel_type_number(const char *name, bool iterator)
{
    static const struct name nothing[NAMES_ROOM];
    struct kernel_types t = {.targets = {{.name = name, .iterator = iterator}}, .target_count = 1};
    uint32_t *named = NULL, count = 0, section = 0;
    struct source s = {0};

    if (!source_read(&s) && !source_parse(&s))
        find_named(&t, &s, nothing, &named, &count, &section);
    source_free(&s);
    free(named);
    return t.targets[0].id;
}

/* Picks what a type holds by value. A pointer's target is left out, but for the arguments of a
 * tracepoint, which its typedef points at. */
static void pick_parts(struct picked *p, const struct source *s, const struct btf_type *type)
{
    const struct btf_type *to;

    switch (btf_kind(type)) {
    case BTF_KIND_STRUCT:
    case BTF_KIND_UNION:
        for (int i = 0; i < btf_vlen(type); i++)
            pick(p, s, btf_members(type)[i].type);
        break;
    case BTF_KIND_ARRAY:
        pick(p, s, btf_array(type)->type);
        pick(p, s, btf_array(type)->index_type);
        break;
    case BTF_KIND_TYPEDEF:
        to = type->type && type->type <= s->count ? type_at(s, type->type) : NULL;
        if (to && btf_is_ptr(to) && to->type && to->type <= s->count &&
            btf_is_func_proto(type_at(s, to->type)))
            pick(p, s, to->type);
        pick(p, s, type->type);
        break;
    case BTF_KIND_CONST:
    case BTF_KIND_VOLATILE:
    case BTF_KIND_RESTRICT:
    case BTF_KIND_TYPE_TAG:
    case BTF_KIND_VAR:
        pick(p, s, type->type);
        break;
    default:
        break;
    }
}

/* ---- writing ---- */

static int put_string(struct picked *p, const char *text, uint32_t *ret)
{
    size_t length = strlen(text) + 1;

    if (length == 1) {
        *ret = 0; /* no name */
        return 0;
    }
    if (array_reserve(p->strings, p->strings_size, p->strings_room, length))
        return -ENOMEM;
    memcpy(p->strings + p->strings_size, text, length);
    *ret = (uint32_t)p->strings_size;
    p->strings_size += length;
    return 0;
}

static uint32_t new_id(const struct picked *p, const struct source *s, uint32_t id)
{
    return id <= s->count ? p->ids[id] : 0;
}

/* Translates names and types of what follows the common part, in place. */
static int translate_parts(struct picked *p, const struct source *s, struct btf_type *type)
{
    int result = 0;

    for (int i = 0; !result && i < btf_vlen(type); i++) {
        if (btf_is_composite(type)) {
            struct btf_member *member = btf_members(type) + i;

            member->type = new_id(p, s, member->type);
            result = put_string(p, string_at(s, member->name_off), &member->name_off);
        } else if (btf_is_enum(type)) {
            struct btf_enum *value = btf_enum(type) + i;

            result = put_string(p, string_at(s, value->name_off), &value->name_off);
        } else if (btf_is_enum64(type)) {
            struct btf_enum64 *value = btf_enum64(type) + i;

            result = put_string(p, string_at(s, value->name_off), &value->name_off);
        } else if (btf_is_func_proto(type)) {
            btf_params(type)[i] =
                (struct btf_param){.type = new_id(p, s, btf_params(type)[i].type)};
        }
    }
    return result;
}

static bool refers(const struct btf_type *type)
{
    return btf_is_mod(type) || btf_is_ptr(type) || btf_is_typedef(type) || btf_is_var(type) ||
           btf_is_func_proto(type);
}

static int put_type(struct picked *p, const struct source *s, uint32_t id)
{
    const struct btf_type *from = type_at(s, id);
    size_t bytes = sizeof(*from) + (size_t)extra_bytes(from);
    struct btf_type *to;
    int result;

    if (array_reserve(p->types, p->types_size, p->types_room, bytes))
        return -ENOMEM;
    to = memcpy(p->types + p->types_size, from, bytes);
    p->types_size += bytes;
    result = put_string(p, string_at(s, from->name_off), &to->name_off);
    if (refers(to))
        to->type = new_id(p, s, to->type);
    if (btf_is_array(to)) {
        btf_array(to)->type = new_id(p, s, btf_array(to)->type);
        btf_array(to)->index_type = new_id(p, s, btf_array(to)->index_type);
    }
    return result ? result : translate_parts(p, s, to);
}

/* Writes where the per-processor variables lie that were picked. */
static int put_section(struct picked *p, const struct source *s)
{
    const struct btf_type *from = type_at(s, p->section);
    size_t bytes = sizeof(*from) + (size_t)extra_bytes(from);
    struct btf_type *to;
    int kept = 0;

    if (array_reserve(p->types, p->types_size, p->types_room, bytes))
        return -ENOMEM;
    to = memcpy(p->types + p->types_size, from, sizeof(*from));
    for (int i = 0; i < btf_vlen(from); i++) {
        struct btf_var_secinfo info = btf_var_secinfos(from)[i];

        info.type = new_id(p, s, info.type);
        if (info.type)
            btf_var_secinfos(to)[kept++] = info;
    }
    to->info = (to->info & ~0xffffu) | (uint32_t)kept;
    p->types_size += sizeof(*to) + (size_t)kept * sizeof(struct btf_var_secinfo);
    return put_string(p, PERCPU, &to->name_off);
}

static int put_all(struct picked *p, const struct source *s)
{
    int result = array_add(p->strings, p->strings_size, p->strings_room, '\0');

    for (uint32_t i = 1; !result && i <= p->count; i++)
        result = put_type(p, s, p->order[i]);
    if (!result && p->section)
        result = put_section(p, s);
    return result;
}

static void picked_free(struct picked *p)
{
    free(p->ids);
    free(p->order);
    free(p->types);
    free(p->strings);
}

static int pick_named(struct kernel_types *t, struct picked *p, struct source *s,
                      const struct name *names)
{
    uint32_t *named = NULL, count = 0;
    int result = find_named(t, s, names, &named, &count, &p->section);

    if (!result) {
        p->ids = calloc(s->count + 1, sizeof(*p->ids));
        p->order = malloc((s->count + 1) * sizeof(*p->order));
        result = p->ids && p->order ? 0 : -ENOMEM;
    }
    for (uint32_t i = 0; !result && i < count; i++)
        pick(p, s, named[i]);
    for (uint32_t i = 1; !result && i <= p->count; i++)
        pick_parts(p, s, type_at(s, p->order[i]));
    free(named);
    return result;
}

/* ---- as one file ---- */

static int hand_over(struct kernel_types *t, const uint8_t *bytes, size_t size)
{
    if (write(t->file, bytes, size) != (ssize_t)size)
        return -errno;
    t->btf = btf__new(bytes, (__u32)size);
    return t->btf ? 0 : -errno;
}

static uint32_t number_of(const struct btf *btf, const char *name, uint32_t kind)
{
    int id = btf__find_by_name_kind(btf, name, kind);

    return id > 0 ? (uint32_t)id : 0;
}

/* Takes all types as they are, as libbpf reads them. */
static int hand_over_all(struct kernel_types *t, const struct source *s)
{
    int result = hand_over(t, s->bytes, s->size);
    char name[64];

    for (unsigned i = 0; !result && i < t->target_count; i++) {
        struct kernel_target *target = &t->targets[i];

        snprintf(name, sizeof(name), "%s%s", target->iterator ? ITERATOR : TRACEPOINT,
                 target->name);
        target->id = number_of(t->btf, name, target->iterator ? BTF_KIND_FUNC : BTF_KIND_TYPEDEF);
    }
    if (!result) {
        t->cast = number_of(t->btf, CAST, BTF_KIND_FUNC);
        t->task = number_of(t->btf, TASK, BTF_KIND_STRUCT);
    }
    return result;
}

static int finish(struct kernel_types *t, const struct picked *p)
{
    struct btf_header header = {
        .magic = BTF_MAGIC,
        .version = BTF_VERSION,
        .hdr_len = sizeof(header),
        .type_len = (uint32_t)p->types_size,
        .str_off = (uint32_t)p->types_size,
        .str_len = (uint32_t)p->strings_size,
    };
    size_t size = sizeof(header) + p->types_size + p->strings_size;
    uint8_t *bytes = malloc(size);
    int result;

    if (!bytes)
        return -ENOMEM;
    memcpy(bytes, &header, sizeof(header));
    array_copy(bytes + sizeof(header), p->types, p->types_size);
    array_copy(bytes + sizeof(header) + p->types_size, (uint8_t *)p->strings, p->strings_size);
    result = hand_over(t, bytes, size);
    free(bytes);
    return result;
}

int kernel_types_init(struct kernel_types *t, struct prcb_error *err)
{
    *t = (struct kernel_types){.file = memfd_create("prcb-kernel-types", MFD_CLOEXEC)};
    if (t->file < 0)
        return prcb_fail(err, -errno, "memfd_create: %s", strerror(errno));
    snprintf(t->path, sizeof(t->path), "/proc/self/fd/%d", t->file);
    return 0;
}

static int find(struct kernel_types *t, struct source *s, const struct bpf_object *object,
                const char *const *names)
{
    struct name wanted[NAMES_ROOM] = {0};
    struct picked picked = {0};
    int result = want_targets(t, object);

    if (!result)
        result = source_parse(s);
    if (!result)
        result = want_all(wanted, bpf_object__btf(object), names);
    if (!result)
        result = pick_named(t, &picked, s, wanted);
    if (!result)
        result = put_all(&picked, s);
    if (!result)
        result = finish(t, &picked);
    picked_free(&picked);
    return result;
}

int kernel_types_find(struct kernel_types *t, const struct bpf_object *object,
                      const char *const *names, struct prcb_error *err)
{
    struct source source = {0};
    int result = source_read(&source);

    if (!result)
        result = find(t, &source, object, names);
    if (result == -EBADMSG) /* of a kernel to come: libbpf may know what it is */
        result = hand_over_all(t, &source);
    source_free(&source);
    if (result == -ENOENT)
        return prcb_fail(err, -EOPNOTSUPP,
                         "the kernel has no BTF (%s): it must be built with "
                         "CONFIG_DEBUG_INFO_BTF",
                         kernel_types_source);
    return result ? prcb_fail(err, result, "%s: %s", kernel_types_source, strerror(-result)) : 0;
}

void kernel_types_free(struct kernel_types *t)
{
    if (t->path[0] && t->file >= 0)
        close(t->file);
    btf__free(t->btf);
    *t = (struct kernel_types){.file = -1};
}

/* ---- what they tell ---- */

int kernel_tracepoint_arguments(const struct btf *btf, const char *name)
{
    char type_name[64];
    const struct btf_type *type;
    int id;

    snprintf(type_name, sizeof(type_name), "btf_trace_%s", name);
    id = btf__find_by_name_kind(btf, type_name, BTF_KIND_TYPEDEF);
    if (id < 0)
        return -1;
    type = btf__type_by_id(btf, btf__type_by_id(btf, (__u32)id)->type); /* the pointer */
    type = type ? btf__type_by_id(btf, type->type) : NULL;              /* the function */
    if (!type || !btf_is_func_proto(type))
        return -1;
    return btf_vlen(type) - 1;
}

#define UNNAMED_LEVELS 8 /* more than kernels have */

static bool type_has_member(const struct btf *btf, __u32 id, const char *member, int levels)
{
    const struct btf_type *type = btf__type_by_id(btf, id);

    for (int i = 0; type && btf_is_composite(type) && i < btf_vlen(type); i++) {
        const struct btf_member *part = &btf_members(type)[i];
        const char *name = btf__name_by_offset(btf, part->name_off);

        if (!strcmp(name, member) ||
            (!*name && levels && type_has_member(btf, part->type, member, levels - 1)))
            return true;
    }
    return false;
}

bool kernel_has_member(const struct btf *btf, const char *type_name, const char *member)
{
    int id = btf__find_by_name_kind(btf, type_name, BTF_KIND_STRUCT);

    return id > 0 && type_has_member(btf, (__u32)id, member, UNNAMED_LEVELS);
}

bool kernel_has_constant(const struct btf *btf, const char *type_name, const char *constant)
{
    int id = btf__find_by_name_kind(btf, type_name, BTF_KIND_ENUM);
    const struct btf_type *type = id > 0 ? btf__type_by_id(btf, (__u32)id) : NULL;

    for (int i = 0; type && i < btf_vlen(type); i++) {
        if (!strcmp(btf__name_by_offset(btf, btf_enum(type)[i].name_off), constant))
            return true;
    }
    return !type;
}

#define ACCOUNTS   KERNEL_FOR_ACCOUNTS
#define CLIENTS    KERNEL_FOR_CLIENTS
#define PROCESSORS KERNEL_FOR_PROCESSORS
#define SAMPLES    KERNEL_FOR_SAMPLES
#define THREADS    (ACCOUNTS | CLIENTS)
#define SWITCHES   (THREADS | SAMPLES)
#define ALL        (SWITCHES | PROCESSORS)
#define HELPER(name, release, programs, without)                                                   \
    {"bpf_func_id", "BPF_FUNC_" #name, "bpf_" #name, release, programs},
#define MAP(name, words, release, programs, without)                                               \
    {"bpf_map_type", "BPF_MAP_TYPE_" #name, words, release, programs},
#define PROGRAM(name, words, release, programs, without)                                           \
    {"bpf_prog_type", "BPF_PROG_TYPE_" #name, words, release, programs},
#define MEMBER(type, name, release, programs, without)                                             \
    {#type, #name, #type "." #name, release, programs},
#define OTHER(kind, name, release, without)
const struct kernel_feature kernel_features[] = {
#include "features.def"
    {NULL, NULL, NULL, NULL, 0},
};
#undef MEMBER

static bool is_before(const char *release, const char *other)
{
    unsigned major = 0, minor = 0, other_major = 0, other_minor = 0;

    sscanf(release, "%u.%u", &major, &minor);
    sscanf(other, "%u.%u", &other_major, &other_minor);
    return major < other_major || (major == other_major && minor < other_minor);
}

static int lacks(const struct kernel_feature *need, struct prcb_error *err)
{
    struct utsname kernel = {0};

    uname(&kernel);
    if (*need->release && is_before(kernel.release, need->release))
        return prcb_fail(err, -EOPNOTSUPP,
                         "Linux %s is too old for the eBPF programs: it has no %s, which came "
                         "with %s",
                         kernel.release, need->words, need->release);
    return prcb_fail(err, -EOPNOTSUPP, "Linux %s has no %s, which the eBPF programs need",
                     kernel.release, need->words);
}

/* Tells whether the kernel has what says which programs nobody but root may look into: it is the
 * task's from 7.2, before that its memory's. */
static bool tells_dumpable(const struct btf *btf)
{
    return kernel_has_member(btf, "task_struct", "exec_state")
               ? kernel_has_member(btf, "task_exec_state", "dumpable")
               : kernel_has_member(btf, "task_struct", "mm") &&
                     kernel_has_member(btf, "mm_struct", "flags");
}

static bool has_feature(const struct btf *btf, const struct kernel_feature *feature)
{
    return strncmp(feature->type, "bpf_", 4) || strncmp(feature->name, "BPF_", 4)
               ? kernel_has_member(btf, feature->type, feature->name)
               : kernel_has_constant(btf, feature->type, feature->name);
}

bool kernel_has_loop(const struct btf *btf)
{
    return btf__find_by_name_kind(btf, "bpf_func_id", BTF_KIND_ENUM) > 0 &&
           kernel_has_constant(btf, "bpf_func_id", "BPF_FUNC_loop");
}

/* The row of features.def with these words. */
static const struct kernel_feature *feature_of(const char *words)
{
    const struct kernel_feature *each = kernel_features;

    while (strcmp(each->words, words))
        each++;
    return each;
}

int kernel_check(const struct btf *btf, enum kernel_for programs, struct prcb_error *err)
{
    const struct kernel_feature *turns = feature_of("bpf_for_each_map_elem");
    static const struct kernel_feature on_cpu = {"task_struct", "on_cpu", "task_struct.on_cpu", "",
                                                 THREADS},
                                       dumpable = {"task_exec_state", "dumpable",
                                                   "task_exec_state.dumpable", "", CLIENTS};

    for (const struct kernel_feature *each = kernel_features; each->type; each++) {
        if (each->programs & programs && !has_feature(btf, each))
            return lacks(each, err);
    }
    if (SWITCHES & programs && !kernel_has_loop(btf) && !has_feature(btf, turns))
        return lacks(turns, err);
    /* Kernels for one processor do not have this member before 6.17. */
    if (on_cpu.programs & programs && libbpf_num_possible_cpus() > 1 &&
        !kernel_has_member(btf, on_cpu.type, on_cpu.name))
        return lacks(&on_cpu, err);
    return dumpable.programs & programs && !tells_dumpable(btf) ? lacks(&dumpable, err) : 0;
}

#define NEEDED_ENUMERATIONS "bpf_map_type", "bpf_func_id", "bpf_prog_type"
const char *const kernel_report_names[] = {"btf_trace_sched_switch", "btf_trace_contention_begin",
                                           "bpf_local_storage", NEEDED_ENUMERATIONS, NULL};

/* The memory of task storage can be had under any lock from 6.19 on (before, by another way,
 * from 6.4). From 7.0 on, which counts its owner, tracepoints are preempted. */
struct kernel_reports kernel_reports(const struct btf *btf)
{
    return (struct kernel_reports){
        .prev_state = kernel_tracepoint_arguments(btf, "sched_switch") >= 4,
        .locks = kernel_tracepoint_arguments(btf, "contention_begin") > 0,
        .delays = kernel_has_member(btf, "sched_entity", "sched_delayed"),
        .preempts = kernel_has_member(btf, "bpf_local_storage", "use_kmalloc_nolock") ||
                    kernel_has_member(btf, "bpf_local_storage", "owner_refcnt"),
    };
}
