/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The memory of a process that says it is Ruby 3.1 (made_memory.h).
 */
#include "made_memory.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct runtime_process process = {.file = "libruby-3.1.so.3.1.2"};

    process.symbols[0].address = 0x10000;
    memcpy(&process.symbols[2].word, "3.1.2", sizeof("3.1.2"));
    if (size)
        read_made(&runtime_ruby, &process, (struct input){data, size});
    return 0;
}
