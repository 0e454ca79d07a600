/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Checks whether the caller's memory is there. NT answers bad pointers with a status. We do the
 * same by asking the kernel to make the pages present, which neither reads nor changes their
 * contents.
 */
#include "inside.h"

#include <sys/mman.h>
#include <unistd.h>

#ifndef MADV_POPULATE_READ /* Linux 5.14 */
#define MADV_POPULATE_READ  22
#define MADV_POPULATE_WRITE 23
#endif

static uintptr_t page_mask(void)
{
    return (uintptr_t)sysconf(_SC_PAGESIZE) - 1;
}

static bool populate(uintptr_t address, size_t length, int advice)
{
    uintptr_t mask = page_mask(), begin = address & ~mask, end;

    if (__builtin_add_overflow(address, length, &end) || end > UINTPTR_MAX - mask)
        return false;
    return !madvise((void *)begin, ((end + mask) & ~mask) - begin, advice);
}

/* Where the kernel does not know the advice (it says so on a page that is certainly there), a bad
 * pointer faults as it does everywhere else in C. */
static bool is_there(uintptr_t address, size_t length, int advice)
{
    char here = 0;

    return populate(address, length, advice) || !populate((uintptr_t)&here, 1, advice);
}

static NTSTATUS probe(uintptr_t address, size_t length, size_t alignment, int advice)
{
    if (!length)
        return STATUS_SUCCESS;
    if (address & (alignment - 1))
        return nt_fail(STATUS_DATATYPE_MISALIGNMENT, "%p is not a multiple of %zu", (void *)address,
                       alignment);
    if (!address || !is_there(address, length, advice))
        return nt_fail(STATUS_ACCESS_VIOLATION,
                       "%zu bytes at %p: no such memory, or it cannot be %s", length,
                       (void *)address, advice == MADV_POPULATE_WRITE ? "written" : "read");
    return STATUS_SUCCESS;
}

NTSTATUS nt_probe_read(const void *buffer, size_t length, size_t alignment)
{
    return probe((uintptr_t)buffer, length, alignment, MADV_POPULATE_READ);
}

NTSTATUS nt_probe_write(void *buffer, size_t length, size_t alignment)
{
    return probe((uintptr_t)buffer, length, alignment, MADV_POPULATE_WRITE);
}
