/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The memory of a process that says it is V8: where its objects have what, as node exports it, then
 * its pages and the addresses of its stack (made_memory.h).
 */
#include "made_memory.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct runtime_process process = {.file = "node"};
    size_t words = 0;

    while (runtime_node.symbols[words])
        words++;
    if (size <= words)
        return 0;
    for (size_t i = 0; i < words; i++)
        process.symbols[i] =
            (struct runtime_symbol){.address = 1, .word = (uint32_t)(int32_t)(int8_t)data[i]};
    read_made(&runtime_node, &process, (struct input){data + words, size - words});
    return 0;
}
