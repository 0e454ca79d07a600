/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The memory of a process that says it is a JVM: where its tables have the members of structures,
 * then pages, of which there is one at every address, so that each pointer leads on. What is read
 * ends, and its texts do.
 */
#include <assert.h>
#include <string.h>

#include "java.h"
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

    for (size_t i = 0; i < MEMORY_PAGE; i++)
        to[i] = input->data[(at + i) % input->size];
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct runtime_answer answer;
    struct memory memory;
    struct input input = {data, size};
    struct runtime_process process = {.memory = &memory, .file = "libjvm.so"};
    uint16_t members[JAVA_MEMBERS];

    if (size < sizeof(members) + 1)
        return 0;
    memcpy(members, data, sizeof(members));
    input.data += sizeof(members);
    input.size -= sizeof(members);
    java_members = members;
    memory_init(&memory);
    memory.fetch = fetch;
    memory.ctx = &input;
    memory_begin(&memory);
    runtime_read(&runtime_java, &process, &(struct runtime_thread){1}, &answer);
    assert(answer.count <= RUNTIME_FRAMES && answer.text_used <= RUNTIME_TEXT);
    for (uint32_t i = 0; i < answer.count; i++) {
        const struct runtime_frame *frame = &answer.frames[i];

        assert(frame->function + strlen(answer.text + frame->function) < answer.text_used);
        assert(frame->file + strlen(answer.text + frame->file) < answer.text_used);
    }
    memory_deinit(&memory);
    return 0;
}
