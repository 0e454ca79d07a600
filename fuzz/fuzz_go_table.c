/* SPDX-License-Identifier: BSD-2-Clause
 *
 * A table of Go's functions of anything: an address, then the table. What is found at an address
 * contains it and has a name that ends in the table; frames are no deeper than any stack.
 */
#include <assert.h>
#include <string.h>

#include "go_table.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_places(const struct go_table *table, const struct go_function *function,
                         uint64_t address)
{
    const char *end = (const char *)table->bytes + table->size;
    struct go_place places[8];
    size_t count = go_table_places(table, function, address, places, 8);

    assert(count <= 8);
    for (size_t i = 0; i < count; i++) {
        assert(places[i].function + strlen(places[i].function) < end);
        assert(!*places[i].file || places[i].file + strlen(places[i].file) < end);
    }
}

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
    check_places(table, &function, address);
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
    table.extra = data;
    table.extra_size = size;
    check(&table, address);
    for (uint64_t i = 0; i < 64; i++)
        check(&table, table.text + 16 * i);
    return 0;
}
