/* SPDX-License-Identifier: BSD-2-Clause
 *
 * A table of Go's functions of anything: an address, then the table. What is found at an address
 * contains it and has a name that ends in the table; frames are no deeper than any stack.
 */
#include <assert.h>
#include <string.h>

#include "go_table.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct go_table *table, uint64_t address)
{
    struct go_function function;
    uint64_t depth;

    if (!go_table_find(table, address, &function))
        return;
    assert(function.begin <= address && address < function.end);
    assert(function.name + strlen(function.name) < (const char *)table->bytes + table->size);
    if (go_table_depth(table, &function, address, &depth))
        assert(depth % 8 == 0 && depth <= 64u << 20);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct go_table table;
    uint64_t address;

    if (size < sizeof(address))
        return 0;
    memcpy(&address, data, sizeof(address));
    if (go_table_open(data + sizeof(address), size - sizeof(address), &table))
        return 0;
    check(&table, address);
    for (uint64_t i = 0; i < 64; i++)
        check(&table, table.text + 16 * i);
    return 0;
}
