/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The memory of a process that says it is CPython: the version, then its pages (made_memory.h).
 */
#include <stdio.h>

#include "made_memory.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct runtime_process process = {.symbols[0].address = 0x10000};
    char file[32];

    if (size < 2)
        return 0;
    snprintf(file, sizeof(file), "python3.%u", 9 + data[0] % 7);
    process.file = file;
    read_made(&runtime_python, &process, (struct input){data + 1, size - 1});
    return 0;
}
