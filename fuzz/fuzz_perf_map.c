/* SPDX-License-Identifier: BSD-2-Clause
 *
 * /tmp/perf-PID.map of anything: what is found at an address must contain it.
 */
#include <assert.h>
#include <string.h>

#include "symbols.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct symbols *symbols;
    uint64_t address = 0;
    FILE *file;

    if (size < sizeof(address) + 1)
        return 0;
    memcpy(&address, data, sizeof(address));
    file = fmemopen((void *)(data + sizeof(address)), size - sizeof(address), "r");
    assert(file);
    if (!symbols_read_perf_map(file, &symbols)) {
        const struct symbol *found = symbols_find(symbols, address);

        assert(!found || (found->start <= address && address < found->end && *found->name));
        symbols_close(symbols);
    }
    fclose(file);
    return 0;
}
