/* SPDX-License-Identifier: BSD-2-Clause
 *
 * NtQuerySystemInformation and its Ex form: which classes there are, which lengths each takes, and
 * what is checked for all of them. query_fill.c makes the elements.
 */
#include <stdlib.h>
#include <string.h>

#include "query.h"

/* How the buffer's length is taken, n being the processors of the group. */
enum rule {
    RULE_MULTIPLE, /* a multiple of the element, not 0: as many as fit */
    RULE_ALL,      /* n elements or more */
    RULE_CYCLES,   /* one element or more; a buffer shorter than n is filled and the call fails
                    * all the same */
    RULE_ONE,      /* one structure for the system, or more */
    RULE_EXACT,    /* one structure for the system, exactly */
    RULE_TAIL,  /* one structure for the system: its first NT_PERFORMANCE_LEAST bytes, or more of it
                 */
    RULE_UP_TO, /* as much of one structure for the system as is asked for */
    RULE_WHOLE, /* all that is built for the group, or more */
};

static NTSTATUS make_time_adjustment(void *ret)
{
    return nt_time_adjustment(ret);
}

static NTSTATUS make_switches(void *ret)
{
    SYSTEM_CONTEXT_SWITCH_INFORMATION *to = ret;
    NTSTATUS status = nt_view_read(0, nt_view_active());
    uint64_t switches = 0;

    if (!status)
        status = nt_status(nt_view_switches(&switches));
    if (status)
        return status;
    to->ContextSwitches = (uint32_t)switches;
    for (uint32_t i = 0; i < nt_view_active(); i++)
        to->SwitchToIdle += (uint32_t)nt_view_record(i)->idle_entries;
    return STATUS_SUCCESS;
}

#define CLASS_LOGICAL  0x49u
#define CLASS_TOPOLOGY 0x6bu
#define CLASS_CPU_SETS 0xafu

static const struct query_class {
    uint32_t number;
    uint32_t size;
    enum rule rule;
    bool ex;    /* also for a group */
    bool fresh; /* tells what must be looked for */
    void (*fill)(const struct nt_row *row, union nt_element *ret);
    NTSTATUS (*make)(void *ret); /* instead: the one structure; finds it zeroed */
    NTSTATUS (*build)(uint32_t first, uint32_t count, void **ret, uint32_t *ret_size);
} classes[] = {
    {0x00, NT_BASIC_SIZE, RULE_EXACT, false, false, .make = nt_make_basic},
    {0x01, 0x0c, RULE_ONE, false, false, .make = nt_make_processor},
    {0x02, NT_SYSTEM_MOST, RULE_TAIL, false, true, .make = nt_make_performance},
    {0x03, 0x30, RULE_UP_TO, false, false, .make = nt_make_time_of_day},
    {0x08, 0x30, RULE_MULTIPLE, true, false, nt_fill_performance},
    {0x17, 0x18, RULE_ALL, true, false, nt_fill_interrupt},
    {0x1c, 0x0c, RULE_EXACT, false, false, .make = make_time_adjustment},
    {0x24, 0x30, RULE_ONE, false, false, .make = make_switches},
    {0x2a, 0x30, RULE_ALL, true, false, nt_fill_idle},
    {0x3d, 0x50, RULE_ALL, true, true, nt_fill_power},
    {CLASS_LOGICAL, 0, RULE_WHOLE, true, false, .build = nt_make_logical},
    {0x53, 0x08, RULE_CYCLES, true, false, nt_fill_idle_cycles},
    {0x64, 0, RULE_WHOLE, true, true, .build = nt_make_distribution},
    {0x6c, 0x08, RULE_CYCLES, true, false, nt_fill_cycles},
    {0x8d, 0x48, RULE_MULTIPLE, true, false, nt_fill_performance},
};
#define CLASSES (sizeof(classes) / sizeof(classes[0]))

struct request {
    const struct query_class *row;
    uint32_t first, count; /* processors of the group */
    char *buffer;
    uint32_t length;
    uint32_t told; /* bytes written, or wanted */
};

static const struct query_class *find(uint32_t number)
{
    for (size_t i = 0; i < CLASSES; i++) {
        if (classes[i].number == number)
            return &classes[i];
    }
    return NULL;
}

static NTSTATUS mismatch(struct request *request, uint32_t wanted)
{
    request->told = wanted;
    return nt_fail(STATUS_INFO_LENGTH_MISMATCH, "class 0x%x: %u bytes; it takes %u",
                   request->row->number, request->length, wanted);
}

/* Fills the first `count` elements. All processors are read before anything is written. */
static NTSTATUS fill_elements(struct request *request, uint32_t count)
{
    uint32_t size = request->row->size;
    NTSTATUS status = nt_view_read(request->first, count);

    for (uint32_t i = 0; i < count && !status; i++) {
        struct nt_row row = {.record = nt_view_record(request->first + i),
                             .cpu = nt_view_cpu(request->first + i)};
        union nt_element element;

        memset(&element, 0, sizeof(element));
        request->row->fill(&row, &element);
        memcpy(request->buffer + (size_t)i * size, &element, size);
    }
    if (!status)
        request->told = count * size;
    return status;
}

static NTSTATUS query_elements(struct request *request)
{
    uint32_t size = request->row->size, whole = request->count * size;
    uint32_t fit = request->length / size, count = fit < request->count ? fit : request->count;

    if (request->row->rule == RULE_MULTIPLE ? !fit || request->length % size
                                            : request->length < whole)
        return mismatch(request, whole);
    return fill_elements(request, count);
}

static NTSTATUS query_cycles(struct request *request)
{
    uint32_t size = request->row->size, whole = request->count * size;
    uint32_t fit = request->length / size;
    NTSTATUS status;

    request->told = whole;
    if (!fit)
        return nt_fail(STATUS_BUFFER_TOO_SMALL, "class 0x%x: %u bytes; it takes %u",
                       request->row->number, request->length, whole);
    if (fit >= request->count)
        return fill_elements(request, request->count);
    status = fill_elements(request, fit);
    return status ? status : mismatch(request, whole);
}

static NTSTATUS query_one(struct request *request)
{
    const enum rule rule = request->row->rule;
    uint32_t size = request->row->size, length = request->length;
    uint32_t least = rule == RULE_UP_TO ? 0 : rule == RULE_TAIL ? NT_PERFORMANCE_LEAST : size;
    uint64_t made[NT_SYSTEM_MOST / sizeof(uint64_t)] = {0};
    NTSTATUS status;

    if (length < least || (length > size && (rule == RULE_UP_TO || rule == RULE_EXACT)))
        return mismatch(request, rule == RULE_UP_TO ? size : least);
    status = request->row->make(made);
    if (status)
        return status;
    request->told = length < size ? length : size;
    if (request->told)
        memcpy(request->buffer, made, request->told);
    return STATUS_SUCCESS;
}

static NTSTATUS query_whole(struct request *request)
{
    void *result = NULL;
    uint32_t size = 0;
    NTSTATUS status = nt_view_read(request->first, request->count);

    if (!status)
        status = request->row->build(request->first, request->count, &result, &size);
    if (!status && request->length < size)
        status = mismatch(request, size);
    if (!status) {
        memcpy(request->buffer, result, size);
        request->told = size;
    }
    free(result);
    return status;
}

static NTSTATUS answer(struct request *request)
{
    switch (request->row->rule) {
    case RULE_MULTIPLE:
    case RULE_ALL:
        return query_elements(request);
    case RULE_CYCLES:
        return query_cycles(request);
    case RULE_WHOLE:
        return query_whole(request);
    default:
        return query_one(request);
    }
}

static NTSTATUS no_group(uint32_t group)
{
    return nt_fail(STATUS_INVALID_PARAMETER, "no processor group %u", group);
}

static NTSTATUS choose_processors(struct request *request, uint32_t group)
{
    request->first = 0;
    request->count = nt_view_active();
    if (group == PRCB_NT_ALL_GROUPS || nt_group(group, &request->first, &request->count))
        return STATUS_SUCCESS;
    return no_group(group);
}

/* Called under the lock, for it keeps what is read. As on NT, the wanted length is returned with
 * each of the two statuses that speak of lengths. */
static NTSTATUS query(struct request *request, uint32_t group, uint32_t *return_length)
{
    NTSTATUS status = STATUS_SUCCESS;

    if (request->row->number != 0x1c) /* asks no processor */
        status = nt_view_look(request->row->fresh);
    if (!status && request->row->ex)
        status = choose_processors(request, group);
    if (!status)
        status = answer(request);
    if (return_length &&
        (!status || status == STATUS_INFO_LENGTH_MISMATCH || status == STATUS_BUFFER_TOO_SMALL))
        *return_length = request->told;
    return status;
}

static NTSTATUS query_locked(const struct query_class *row, uint32_t group, void *buffer,
                             uint32_t length, uint32_t *return_length)
{
    struct request request = {.row = row, .buffer = buffer, .length = length};
    NTSTATUS status;

    nt_enter();
    status = query(&request, group, return_length);
    nt_leave();
    return status;
}

static NTSTATUS probe(void *buffer, uint32_t length, uint32_t *return_length)
{
    NTSTATUS status = nt_probe_write(buffer, length, sizeof(uint32_t));

    if (!status && return_length)
        status = nt_probe_write(return_length, sizeof(*return_length), sizeof(*return_length));
    return status;
}

static NTSTATUS unknown(uint32_t number)
{
    return nt_fail(STATUS_INVALID_INFO_CLASS, "class 0x%x is not one of those that are here",
                   number);
}

NTSTATUS prcb_NtQuerySystemInformation(uint32_t SystemInformationClass, void *SystemInformation,
                                       uint32_t SystemInformationLength, uint32_t *ReturnLength)
{
    const struct query_class *row = find(SystemInformationClass);
    NTSTATUS status = probe(SystemInformation, SystemInformationLength, ReturnLength);

    if (!status && SystemInformationClass == CLASS_CPU_SETS)
        status = nt_fail(STATUS_INVALID_PARAMETER, "class 0xaf: the Ex call only, of a process");
    if (!status && !row)
        status = unknown(SystemInformationClass);
    return status ? status
                  : query_locked(row, row->number == CLASS_LOGICAL ? 0 : nt_current_group(),
                                 SystemInformation, SystemInformationLength, ReturnLength);
}

NTSTATUS prcb_nt_query_all_groups(uint32_t information_class, void *buffer, uint32_t length,
                                  uint32_t *ret_length)
{
    const struct query_class *row = find(information_class);
    NTSTATUS status = probe(buffer, length, ret_length);

    /* Masks that do not name their group are of one. */
    if (!status && (!row || !row->ex || row->number == CLASS_LOGICAL))
        status = unknown(information_class);
    return status ? status : query_locked(row, PRCB_NT_ALL_GROUPS, buffer, length, ret_length);
}

NTSTATUS nt_take_group(const void *input, uint32_t length, uint16_t *ret)
{
    NTSTATUS status;

    if (length < sizeof(*ret))
        return nt_fail(STATUS_INVALID_PARAMETER, "a group's number has 2 bytes, not %u", length);
    status = nt_probe_read(input, length, sizeof(*ret));
    if (!status)
        memcpy(ret, input, sizeof(*ret));
    return status;
}

/* Before the buffer is looked at, as NT does. */
static NTSTATUS check_group(uint16_t group)
{
    uint32_t first, count;
    NTSTATUS status;

    nt_enter();
    status = nt_view_glance();
    if (!status && !nt_group(group, &first, &count))
        status = no_group(group);
    nt_leave();
    return status;
}

static NTSTATUS take_relation(const void *input, uint32_t length, uint32_t *ret)
{
    NTSTATUS status;

    if (length < sizeof(*ret))
        return nt_fail(STATUS_INVALID_PARAMETER, "a relation has 4 bytes, not %u", length);
    status = nt_probe_read(input, length, sizeof(*ret));
    if (status)
        return status;
    memcpy(ret, input, sizeof(*ret));
    if (*ret > PRCB_NT_RELATION_GROUP && *ret != PRCB_NT_RELATION_ALL)
        return nt_fail(STATUS_INVALID_PARAMETER, "unknown relationship %u", *ret);
    return STATUS_SUCCESS;
}

/* Takes NULL for any process, and so this one. */
static NTSTATUS take_process(const void *input, uint32_t length)
{
    void *handle;
    NTSTATUS status;

    if (length < sizeof(handle))
        return nt_fail(STATUS_INVALID_PARAMETER, "a handle has %zu bytes, not %u", sizeof(handle),
                       length);
    status = nt_probe_read(input, length, sizeof(uint32_t));
    if (status)
        return status;
    memcpy(&handle, input, sizeof(handle));
    if (handle && handle != NT_CURRENT_PROCESS)
        return nt_fail(STATUS_INVALID_HANDLE, "%p is not a handle on this process", handle);
    return STATUS_SUCCESS;
}

/* Answers classes 0x6B and 0xAF, asked for the whole system and not for a group. */
static NTSTATUS query_system(uint32_t number, const void *input, uint32_t input_length,
                             void *buffer, uint32_t length, uint32_t *return_length)
{
    const bool sets = number == CLASS_CPU_SETS;
    uint32_t relation = 0, size = 0;
    void *made = NULL;
    NTSTATUS status =
        sets ? take_process(input, input_length) : take_relation(input, input_length, &relation);

    if (!status)
        status = probe(buffer, length, return_length);
    if (status)
        return status;
    nt_enter();
    status = nt_view_glance();
    if (!status)
        status = sets ? nt_make_cpu_sets(&made, &size) : nt_make_topology(relation, &made, &size);
    nt_leave();
    if (status)
        return status;
    if (length < size)
        status = nt_fail(sets ? STATUS_BUFFER_TOO_SMALL : STATUS_INFO_LENGTH_MISMATCH,
                         "class 0x%x: %u bytes; it takes %u", number, length, size);
    else if (size)
        memcpy(buffer, made, size);
    if (return_length)
        *return_length = size;
    free(made);
    return status;
}

NTSTATUS prcb_NtQuerySystemInformationEx(uint32_t SystemInformationClass, void *InputBuffer,
                                         uint32_t InputBufferLength, void *SystemInformation,
                                         uint32_t SystemInformationLength, uint32_t *ReturnLength)
{
    const struct query_class *row = find(SystemInformationClass);
    uint16_t group = 0;
    NTSTATUS status;

    if (!InputBuffer || !InputBufferLength)
        return nt_fail(STATUS_INVALID_PARAMETER, "the class needs an input buffer");
    if (SystemInformationClass == CLASS_TOPOLOGY || SystemInformationClass == CLASS_CPU_SETS)
        return query_system(SystemInformationClass, InputBuffer, InputBufferLength,
                            SystemInformation, SystemInformationLength, ReturnLength);
    if (!row || !row->ex)
        return unknown(SystemInformationClass);
    status = nt_take_group(InputBuffer, InputBufferLength, &group);
    if (!status)
        status = check_group(group);
    if (!status)
        status = probe(SystemInformation, SystemInformationLength, ReturnLength);
    return status
               ? status
               : query_locked(row, group, SystemInformation, SystemInformationLength, ReturnLength);
}

#define ERROR_INSUFFICIENT_BUFFER 122

uint32_t prcb_QueryIdleProcessorCycleTimeEx(uint16_t Group, uint32_t *BufferLength,
                                            uint64_t *ProcessorIdleCycleTime)
{
    uint32_t wanted = 0, length;
    NTSTATUS status = nt_probe_write(BufferLength, sizeof(*BufferLength), sizeof(*BufferLength));

    if (status)
        return prcb_RtlNtStatusToDosError(status);
    length = ProcessorIdleCycleTime ? *BufferLength : 0;
    status = prcb_NtQuerySystemInformationEx(0x53, &Group, sizeof(Group), ProcessorIdleCycleTime,
                                             length, &wanted);
    if (status && status != STATUS_BUFFER_TOO_SMALL && status != STATUS_INFO_LENGTH_MISMATCH)
        return prcb_RtlNtStatusToDosError(status);
    *BufferLength = wanted;
    return status && ProcessorIdleCycleTime ? ERROR_INSUFFICIENT_BUFFER : 0;
}

uint32_t prcb_QueryIdleProcessorCycleTime(uint32_t *BufferLength, uint64_t *ProcessorIdleCycleTime)
{
    return prcb_QueryIdleProcessorCycleTimeEx((uint16_t)nt_current_group(), BufferLength,
                                              ProcessorIdleCycleTime);
}

NTSTATUS prcb_ZwQuerySystemInformation(uint32_t SystemInformationClass, void *SystemInformation,
                                       uint32_t SystemInformationLength, uint32_t *ReturnLength)
{
    return prcb_NtQuerySystemInformation(SystemInformationClass, SystemInformation,
                                         SystemInformationLength, ReturnLength);
}

NTSTATUS prcb_ZwQuerySystemInformationEx(uint32_t SystemInformationClass, void *InputBuffer,
                                         uint32_t InputBufferLength, void *SystemInformation,
                                         uint32_t SystemInformationLength, uint32_t *ReturnLength)
{
    return prcb_NtQuerySystemInformationEx(SystemInformationClass, InputBuffer, InputBufferLength,
                                           SystemInformation, SystemInformationLength,
                                           ReturnLength);
}
