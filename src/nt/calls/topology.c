/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Topology of the processors as sysfs has it (cores, packages, caches, nodes) and as NT has it:
 * class 0x6B, records of any length for the whole system. A set of processors is reported once,
 * by its first one. Classes 0x49 and 0xAF are made of these records.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "cpu_files.h"
#include "query.h"
#include "words.h"

#define CACHES_MOST 16u
#define NODES_MOST  1024u
#define CPU         "sys/devices/system/cpu/cpu%u/"

struct topology {
    struct procfs *files;
    uint32_t count; /* processors, of all groups */
    bool *set;      /* those of the record that is made */
    char *made;
    uint32_t size, room;
    bool failed;
};

/* Adds zeroed bytes at the end; NULL: out of memory. */
static void *append(struct topology *t, uint32_t size)
{
    if (array_reserve(t->made, t->size, t->room, size)) {
        t->failed = true;
        return NULL;
    }
    memset(t->made + t->size, 0, size);
    t->size += size;
    return t->made + t->size - size;
}

/* Reads the set that a file lists; false: there is no such file. */
static bool read_set(struct topology *t, const char *path)
{
    uint32_t end;
    size_t length;

    return !procfs_read(t->files, path, &length) &&
           !cpu_parse_list(t->files->buffer, length, t->set, t->count, &end);
}

static uint64_t read_number(struct topology *t, const char *path)
{
    uint64_t value = 0;
    size_t length;

    if (!procfs_read(t->files, path, &length))
        cpu_parse_number(t->files->buffer, length, &value);
    return value;
}

static bool is_first(const struct topology *t, uint32_t cpu)
{
    for (uint32_t i = 0; i < cpu; i++) {
        if (t->set[i])
            return false;
    }
    return cpu < t->count && t->set[cpu];
}

static uintptr_t mask_of(const struct topology *t, uint32_t group)
{
    uintptr_t mask = 0;

    for (uint32_t i = 0; i < NT_GROUP_SIZE && group * NT_GROUP_SIZE + i < t->count; i++)
        mask |= (uintptr_t)t->set[group * NT_GROUP_SIZE + i] << i;
    return mask;
}

/* A record with the set's masks behind `fixed` bytes; *ret_groups of them. The body is what
 * follows the head of relation and size. */
static char *append_record(struct topology *t, uint32_t relation, uint32_t fixed,
                           uint16_t *ret_groups)
{
    const uint32_t head[2] = {relation, 0}, start = t->size;
    char *record = append(t, sizeof(head) + fixed);
    uint16_t groups = 0;

    for (uint32_t group = 0; record && group * NT_GROUP_SIZE < t->count; group++) {
        GROUP_AFFINITY affinity = {.Mask = mask_of(t, group), .Group = (uint16_t)group};
        char *to = affinity.Mask ? append(t, sizeof(affinity)) : NULL;

        if (!to)
            continue;
        memcpy(to, &affinity, sizeof(affinity));
        groups++;
    }
    if (t->failed)
        return NULL;
    record = t->made + start; /* it may have moved */
    memcpy(record, &relation, sizeof(relation));
    memcpy(record + 4, &(uint32_t){t->size - start}, sizeof(uint32_t));
    *ret_groups = groups;
    return record + sizeof(head);
}

/* Writes a PROCESSOR_RELATIONSHIP: flags, efficiency class, 20 bytes, the number of masks. */
static void tell_processors(struct topology *t, uint32_t relation, const char *file)
{
    for (uint32_t cpu = 0; cpu < t->count && !t->failed; cpu++) {
        char path[96];
        uint16_t groups;
        uint32_t members = 0;
        char *body;

        snprintf(path, sizeof(path), CPU "topology/%s", cpu, file);
        if (!read_set(t, path)) {
            memset(t->set, 0, t->count * sizeof(*t->set));
            t->set[cpu] = true;
        }
        if (!is_first(t, cpu))
            continue;
        for (uint32_t i = 0; i < t->count; i++)
            members += t->set[i];
        body = append_record(t, relation, 24, &groups);
        if (!body)
            return;
        body[0] = relation == PRCB_NT_RELATION_CORE && members > 1; /* LTP_PC_SMT */
        memcpy(body + 22, &groups, sizeof(groups));
    }
}

/* Writes a NUMA_NODE_RELATIONSHIP: number, 18 bytes, the number of masks. Without nodes all is node
 * 0. */
static void tell_nodes(struct topology *t)
{
    bool any = false;

    for (uint32_t node = 0; node < NODES_MOST && !t->failed; node++) {
        char path[96], *body;
        uint16_t groups;

        snprintf(path, sizeof(path), "sys/devices/system/node/node%u/cpulist", node);
        if (!read_set(t, path)) {
            if (any || node)
                continue;
            memset(t->set, true, t->count * sizeof(*t->set));
        }
        any = true;
        body = append_record(t, PRCB_NT_RELATION_NODE, 24, &groups);
        if (!body)
            return;
        memcpy(body, &node, sizeof(node));
        memcpy(body + 22, &groups, sizeof(groups));
    }
}

static uint8_t cache_type(struct topology *t, const char *path)
{
    size_t length;
    char first = 'U';

    if (!procfs_read(t->files, path, &length) && length)
        first = t->files->buffer[0];
    return first == 'I' ? 1 : first == 'D' ? 2 : 0; /* CacheInstruction, CacheData, CacheUnified */
}

/* Reads "32K", "8192K", "16M". */
static uint64_t cache_size(struct topology *t, const char *path)
{
    struct words text;
    uint64_t value = 0;
    size_t length;

    if (procfs_read(t->files, path, &length))
        return 0;
    text = (struct words){t->files->buffer, t->files->buffer + length};
    words_take_digits(&text, &value);
    if (words_take_prefix(&text, "K"))
        value <<= 10;
    if (words_take_prefix(&text, "M"))
        value <<= 20;
    return value;
}

/* Writes a CACHE_RELATIONSHIP: level, associativity, line, size, type, 18 bytes, the number of
 * masks. */
static bool tell_cache(struct topology *t, uint32_t cpu, uint32_t index)
{
    static const char *const names[] = {"level", "ways_of_associativity", "coherency_line_size"};
    uint64_t facts[3], size;
    char path[96], *body;
    uint32_t type, bytes;
    uint16_t groups, line;

    snprintf(path, sizeof(path), CPU "cache/index%u/shared_cpu_list", cpu, index);
    if (!read_set(t, path))
        return false;
    if (!is_first(t, cpu))
        return true;
    for (unsigned i = 0; i < 3; i++) {
        snprintf(path, sizeof(path), CPU "cache/index%u/%s", cpu, index, names[i]);
        facts[i] = read_number(t, path);
    }
    snprintf(path, sizeof(path), CPU "cache/index%u/size", cpu, index);
    size = cache_size(t, path);
    snprintf(path, sizeof(path), CPU "cache/index%u/type", cpu, index);
    type = cache_type(t, path);
    body = append_record(t, PRCB_NT_RELATION_CACHE, 32, &groups);
    if (!body)
        return false;
    line = (uint16_t)facts[2];
    bytes = size < UINT32_MAX ? (uint32_t)size : UINT32_MAX;
    body[0] = (char)facts[0];
    body[1] = (char)(facts[1] < 255 ? facts[1] : 255);
    memcpy(body + 2, &line, sizeof(line));
    memcpy(body + 4, &bytes, sizeof(bytes));
    memcpy(body + 8, &type, sizeof(type));
    memcpy(body + 30, &groups, sizeof(groups));
    return true;
}

static void tell_caches(struct topology *t)
{
    for (uint32_t cpu = 0; cpu < t->count && !t->failed; cpu++) {
        for (uint32_t index = 0; index < CACHES_MOST && tell_cache(t, cpu, index); index++)
            ;
    }
}

/* Writes a GROUP_RELATIONSHIP: the numbers of groups, 20 bytes, and of each its numbers of
 * processors and its mask. */
static void tell_groups(struct topology *t)
{
    const uint16_t groups = (uint16_t)((t->count + NT_GROUP_SIZE - 1) / NT_GROUP_SIZE);
    const uint32_t one = 40 + (uint32_t)sizeof(uintptr_t), size = 8 + 24 + groups * one;
    const uint32_t head[2] = {PRCB_NT_RELATION_GROUP, size};
    char *record = append(t, size);

    if (!record)
        return;
    memset(t->set, true, t->count * sizeof(*t->set));
    memcpy(record, head, sizeof(head));
    memcpy(record + 8, &groups, sizeof(groups));
    memcpy(record + 10, &groups, sizeof(groups));
    for (uint32_t group = 0; group < groups; group++) {
        char *to = record + 32 + group * one;
        uintptr_t mask = mask_of(t, group);

        to[0] = to[1] = (char)__builtin_popcountll(mask);
        memcpy(to + 40, &mask, sizeof(mask));
    }
}

NTSTATUS nt_make_topology(uint32_t relation, void **ret, uint32_t *ret_size)
{
    struct topology t = {.files = nt_view_files(), .count = nt_view_active()};
    bool all = relation == PRCB_NT_RELATION_ALL;

    t.set = calloc(t.count, sizeof(*t.set));
    t.failed = !t.set;
    if (all || relation == PRCB_NT_RELATION_CORE)
        tell_processors(&t, PRCB_NT_RELATION_CORE, "thread_siblings_list");
    if (all || relation == PRCB_NT_RELATION_PACKAGE)
        tell_processors(&t, PRCB_NT_RELATION_PACKAGE, "core_siblings_list");
    if ((all || relation == PRCB_NT_RELATION_CACHE) && !t.failed)
        tell_caches(&t);
    if (all || relation == PRCB_NT_RELATION_NODE)
        tell_nodes(&t);
    if ((all || relation == PRCB_NT_RELATION_GROUP) && !t.failed)
        tell_groups(&t);
    free(t.set);
    if (t.failed) {
        free(t.made);
        return nt_fail(STATUS_NO_MEMORY, "out of memory");
    }
    *ret = t.made;
    *ret_size = t.size;
    return STATUS_SUCCESS;
}

/* ---- of the records ---- */

struct record {
    uint32_t relation, size;
    const char *body;
};

static struct record record_at(const char *at)
{
    struct record record = {.body = at + 8};

    memcpy(&record.relation, at, sizeof(record.relation));
    memcpy(&record.size, at + 4, sizeof(record.size));
    return record;
}

/* Returns 0 if it has none of the group, or is a record of groups. */
static uintptr_t record_mask(const struct record *record, uint32_t group)
{
    uint32_t at = record->relation == PRCB_NT_RELATION_CACHE ? 32 : 24;
    GROUP_AFFINITY affinity;

    if (record->relation == PRCB_NT_RELATION_GROUP)
        return 0;
    for (; at + sizeof(affinity) <= record->size - 8; at += sizeof(affinity)) {
        memcpy(&affinity, record->body + at, sizeof(affinity));
        if (affinity.Group == group)
            return affinity.Mask;
    }
    return 0;
}

NTSTATUS nt_make_logical(uint32_t first, uint32_t count, void **ret, uint32_t *ret_size)
{
    void *records = NULL;
    uint32_t size = 0, next, told = 0;
    NTSTATUS status = nt_make_topology(PRCB_NT_RELATION_ALL, &records, &size);

    /* This is done in place: no record is as short as an element. */
    for (uint32_t at = 0; at < size && !status; at = next) {
        struct record record = record_at((char *)records + at);
        PRCB_SYSTEM_LOGICAL_PROCESSOR_INFORMATION element;

        next = at + record.size;
        memset(&element, 0, sizeof(element));
        element.ProcessorMask = record_mask(&record, first / NT_GROUP_SIZE);
        element.Relationship = record.relation;
        if (!element.ProcessorMask)
            continue;
        if (record.relation == PRCB_NT_RELATION_CORE)
            memcpy(&element.ProcessorCore, record.body, sizeof(element.ProcessorCore));
        if (record.relation == PRCB_NT_RELATION_NODE)
            memcpy(&element.NumaNode, record.body, sizeof(element.NumaNode));
        if (record.relation == PRCB_NT_RELATION_CACHE)
            memcpy(&element.Cache, record.body, sizeof(element.Cache));
        memcpy((char *)records + told, &element, sizeof(element));
        told += (uint32_t)sizeof(element);
    }
    *ret = records;
    *ret_size = told;
    return status;
}

/* What a record says of the processors of its masks; levels: of the outermost cache seen of each.
 */
static void put_record(const struct record *record, uint32_t count,
                       PRCB_SYSTEM_CPU_SET_INFORMATION *sets, uint8_t *levels)
{
    for (uint32_t cpu = 0; cpu < count; cpu++) {
        uintptr_t mask = record_mask(record, cpu / NT_GROUP_SIZE);
        uint8_t lowest = mask ? (uint8_t)__builtin_ctzll(mask) : 0;

        if (!(mask >> cpu % NT_GROUP_SIZE & 1))
            continue;
        if (record->relation == PRCB_NT_RELATION_CORE)
            sets[cpu].CoreIndex = lowest;
        if (record->relation == PRCB_NT_RELATION_NODE)
            sets[cpu].NumaNodeIndex = lowest;
        if (record->relation == PRCB_NT_RELATION_CACHE && (uint8_t)record->body[0] > levels[cpu]) {
            levels[cpu] = (uint8_t)record->body[0];
            sets[cpu].LastLevelCacheIndex = lowest;
        }
    }
}

NTSTATUS nt_make_cpu_sets(void **ret, uint32_t *ret_size)
{
    const uint32_t count = nt_view_active();
    PRCB_SYSTEM_CPU_SET_INFORMATION *sets = calloc(count, sizeof(*sets));
    uint8_t *levels = calloc(count, 1);
    void *records = NULL;
    uint32_t size = 0;
    NTSTATUS status = sets && levels ? nt_make_topology(PRCB_NT_RELATION_ALL, &records, &size)
                                     : nt_fail(STATUS_NO_MEMORY, "out of memory");

    for (uint32_t cpu = 0; cpu < count && !status; cpu++) {
        uint8_t number = (uint8_t)(cpu % NT_GROUP_SIZE);

        sets[cpu].Size = sizeof(*sets);
        sets[cpu].Id = 0x100 + cpu;
        sets[cpu].Group = (uint16_t)(cpu / NT_GROUP_SIZE);
        sets[cpu].LogicalProcessorIndex = number;
        sets[cpu].CoreIndex = sets[cpu].LastLevelCacheIndex = number;
    }
    for (uint32_t at = 0; at < size && !status;) {
        struct record record = record_at((char *)records + at);

        put_record(&record, count, sets, levels);
        at += record.size;
    }
    free(records);
    free(levels);
    if (status) {
        free(sets);
        return status;
    }
    *ret = sets;
    *ret_size = count * (uint32_t)sizeof(*sets);
    return STATUS_SUCCESS;
}
