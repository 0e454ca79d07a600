/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The handle table of the NT surface.
 */
#include "array.h"
#include "inside.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

/* A handle has its generation above and place + 1 below, times four as NT's are, so that no small
 * number that a program makes up is one. */
#define PLACE_BITS  18
#define PLACES_MAX  ((1u << PLACE_BITS) - 2)
#define GENERATIONS ((uintptr_t)-1 >> (PLACE_BITS + 2))

struct place {
    enum nt_kind kind; /* 0: free */
    uintptr_t generation;
    pid_t tid;
    void *object;
};

static struct place *places;
static uint32_t place_count, place_room;

static void *make_handle(uint32_t place, uintptr_t generation)
{
    return (void *)((generation << PLACE_BITS | (place + 1)) << 2);
}

static struct place *find(void *handle, enum nt_kind kind)
{
    uintptr_t bits = (uintptr_t)handle;
    uint32_t place = (uint32_t)((bits >> 2) & ((1u << PLACE_BITS) - 1)) - 1;

    if (bits & 3 || place >= place_count || places[place].kind != kind ||
        places[place].generation != bits >> (PLACE_BITS + 2))
        return NULL;
    return &places[place];
}

static struct place *free_place(void)
{
    for (uint32_t i = 0; i < place_count; i++) {
        if (!places[i].kind)
            return &places[i];
    }
    if (place_count >= PLACES_MAX ||
        array_add(places, place_count, place_room, (struct place){.kind = 0}))
        return NULL;
    return &places[place_count - 1];
}

void *nt_handle_add(enum nt_kind kind, pid_t tid, void *object)
{
    struct place *place = free_place();

    if (!place)
        return NULL;
    place->kind = kind;
    place->generation = (place->generation + 1) & GENERATIONS;
    place->tid = tid;
    place->object = object;
    return make_handle((uint32_t)(place - places), place->generation);
}

bool nt_handle_get(void *handle, enum nt_kind kind, pid_t *ret_tid, void **ret_object)
{
    const struct place *place = find(handle, kind);

    if (!place)
        return false;
    if (ret_tid)
        *ret_tid = place->tid;
    if (ret_object)
        *ret_object = place->object;
    return true;
}

bool nt_handle_remove(void *handle, enum nt_kind kind)
{
    struct place *place = find(handle, kind);

    if (!place)
        return false;
    place->kind = 0;
    return true;
}

bool nt_handle_exists(enum nt_kind kind, pid_t tid)
{
    for (uint32_t i = 0; i < place_count; i++) {
        if (places[i].kind == kind && (!tid || places[i].tid == tid))
            return true;
    }
    return false;
}

void nt_handle_each(enum nt_kind kind, void (*fn)(void *object))
{
    for (uint32_t i = 0; i < place_count; i++) {
        if (places[i].kind == kind)
            fn(places[i].object);
    }
}

void nt_handles_forget(void)
{
    for (uint32_t i = 0; i < place_count; i++)
        places[i].kind = 0;
}

bool nt_thread_of(void *handle, pid_t *ret)
{
    if (handle == NT_CURRENT_THREAD) {
        *ret = gettid();
        return true;
    }
    return nt_handle_get(handle, NT_THREAD, ret, NULL);
}

void *prcb_GetCurrentThread(void)
{
    return NT_CURRENT_THREAD;
}

void *prcb_OpenThread(uint32_t DesiredAccess, int InheritHandle, uint32_t ThreadId)
{
    void *handle;

    if (ThreadId == 0 || ThreadId > INT32_MAX ||
        syscall(SYS_tgkill, getpid(), (pid_t)ThreadId, 0)) {
        nt_fail(STATUS_INVALID_CID, "this process has no thread %u", ThreadId);
        return NULL;
    }
    nt_enter();
    handle = nt_handle_add(NT_THREAD, (pid_t)ThreadId, NULL);
    nt_leave();
    if (!handle)
        nt_fail(STATUS_NO_MEMORY, "out of memory");
    return handle;
}

#define DUPLICATE_CLOSE_SOURCE 1u

NTSTATUS prcb_NtDuplicateObject(void *SourceProcessHandle, void *SourceHandle,
                                void *TargetProcessHandle, void **TargetHandle,
                                uint32_t DesiredAccess, uint32_t HandleAttributes, uint32_t Options)
{
    void *handle = NULL;
    NTSTATUS status;
    pid_t tid;

    if (SourceProcessHandle != NT_CURRENT_PROCESS || TargetProcessHandle != NT_CURRENT_PROCESS)
        return nt_fail(STATUS_INVALID_HANDLE, "handles are duplicated within this process only");
    status = TargetHandle ? nt_probe_write(TargetHandle, sizeof(*TargetHandle), 1) : STATUS_SUCCESS;
    if (status)
        return status;
    nt_enter();
    if (!nt_thread_of(SourceHandle, &tid))
        status = nt_fail(STATUS_INVALID_HANDLE, "%p is not a handle on a thread", SourceHandle);
    else if (TargetHandle)
        handle = nt_handle_add(NT_THREAD, tid, NULL);
    if (!status && TargetHandle && !handle)
        status = nt_fail(STATUS_NO_MEMORY, "out of memory");
    if (Options & DUPLICATE_CLOSE_SOURCE)
        nt_handle_remove(SourceHandle, NT_THREAD);
    nt_leave();
    if (!status && TargetHandle)
        *TargetHandle = handle;
    return status;
}

NTSTATUS prcb_NtClose(void *Handle)
{
    bool known;

    nt_enter();
    known = nt_handle_remove(Handle, NT_THREAD);
    nt_leave();
    return known ? STATUS_SUCCESS
                 : nt_fail(STATUS_INVALID_HANDLE, "%p is not a handle on a thread", Handle);
}
