/* SPDX-License-Identifier: BSD-2-Clause
 *
 * A compiler's list (/tmp/perf-PID.map) of anything: what is found at an address contains it,
 * begins no earlier than any other that does, and has a name.
 */
#include <assert.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "made_code.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct made_code *code, uint64_t address)
{
    const char *found = made_code_find(code, address);

    assert(!found || *found);
    for (size_t i = 0; i < code->count; i++) {
        const struct made_function *row = &code->rows[i];

        assert(row->start < row->end && *row->name && (!i || row[-1].start <= row->start));
        if (row->name == found)
            assert(row->start <= address && address < row->end &&
                   (i + 1 == code->count || row[1].start > address));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct made_code code;
    uint64_t address = 0;
    int fd;

    if (size < sizeof(address))
        return 0;
    memcpy(&address, data, sizeof(address));
    fd = memfd_create("fuzz", MFD_CLOEXEC);
    assert(fd >= 0 && write(fd, data + sizeof(address), size - sizeof(address)) ==
                          (ssize_t)(size - sizeof(address)));
    lseek(fd, 0, SEEK_SET);
    made_code_read(fd, &code);
    check(&code, address);
    for (size_t i = 0; i < code.count && i < 16; i++)
        check(&code, code.rows[i].end - 1);
    made_code_free(&code);
    return 0;
}
