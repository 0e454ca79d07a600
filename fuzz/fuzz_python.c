/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The memory of a process that says it is CPython: the version, then pages, of which there is one
 * at every address, so that each pointer leads on. What is read ends, and its texts do.
 */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtimes.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct input {
    const uint8_t *data;
    size_t size;
};

static bool fetch(void *ctx, uint64_t address, unsigned char *to)
{
    const struct input *input = ctx;
    size_t at = (size_t)(address / MEMORY_PAGE * 512 % input->size);

    for (size_t i = 0, step; i < MEMORY_PAGE; i += step, at = 0) {
        step = input->size - at < MEMORY_PAGE - i ? input->size - at : MEMORY_PAGE - i;
        memcpy(to + i, input->data + at, step);
    }
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct runtime_answer answer;
    struct input input = {data + 1, size - 1};
    struct memory memory;
    struct runtime_process process = {.memory = &memory};
    char file[32];

    if (size < 2)
        return 0;
    snprintf(file, sizeof(file), "python3.%u", 9 + data[0] % 7);
    process.file = file;
    process.symbols[0].address = 0x10000;
    memory_init(&memory);
    memory.fetch = fetch;
    memory.ctx = &input;
    memory_begin(&memory);
    runtime_read(&runtime_python, &process, &(struct runtime_thread){1}, &answer);
    assert(answer.count <= RUNTIME_FRAMES && answer.text_used <= RUNTIME_TEXT);
    for (uint32_t i = 0; i < answer.count; i++) {
        const struct runtime_frame *frame = &answer.frames[i];

        assert(frame->function + strlen(answer.text + frame->function) < answer.text_used);
        assert(frame->file + strlen(answer.text + frame->file) < answer.text_used);
    }
    memory_deinit(&memory);
    return 0;
}
