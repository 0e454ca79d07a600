/* SPDX-License-Identifier: BSD-2-Clause
 *
 * An ELF file of anything, as the child that reads other people's programs is handed it. The first
 * eight bytes are a place; what is found there must contain it. What libelf and libdw do wrong with
 * such files is theirs, and costs that child.
 */
#include <assert.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "symbols.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct symbols *symbols;
    uint64_t place;
    int fd;

    if (size <= sizeof(place) || size > 1 << 16)
        return 0;
    memcpy(&place, data, sizeof(place));
    fd = memfd_create("program", MFD_CLOEXEC);
    assert(fd >= 0);
    assert(write(fd, data + sizeof(place), size - sizeof(place)) ==
           (ssize_t)(size - sizeof(place)));
    if (!symbols_open_elf(fd, "", NULL, NULL, &symbols)) {
        const struct symbol *found = symbols_find(symbols, place);

        char line[256];

        assert(!found || *found->name);
        assert(!symbols_line(symbols, place, line, sizeof(line)) || strchr(line, '\t'));
        assert(strlen(symbols_build_id(symbols)) <= 128);
        symbols_close(symbols);
    }
    return 0;
}
