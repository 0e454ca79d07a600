/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The memory of a process as the targets of runtimes' readers make it up: of what the fuzzer gave
 * there is a page at every address, so that each pointer leads on.
 */
#ifndef PRCB_FUZZ_MADE_MEMORY_H
#define PRCB_FUZZ_MADE_MEMORY_H

#include <assert.h>
#include <string.h>

#include "runtimes.h"
#include "tasks.h"

struct input {
    const uint8_t *data;
    size_t size;
    unsigned pages; /* that were read: all that can be takes seconds */
};
#define MADE_PAGES 1000

static inline bool fetch(void *ctx, uint64_t address, unsigned char *to)
{
    struct input *input = ctx;
    size_t at = (size_t)(address / MEMORY_PAGE * 512 % input->size);

    if (input->pages++ == MADE_PAGES)
        return false;
    for (size_t i = 0, step; i < MEMORY_PAGE; i += step, at = 0) {
        step = input->size - at < MEMORY_PAGE - i ? input->size - at : MEMORY_PAGE - i;
        memcpy(to + i, input->data + at, step);
    }
    return true;
}

/* Gives a process this memory, until memory_deinit. */
static inline void give_memory(struct runtime_process *process, struct memory *memory,
                               struct input *input)
{
    memory_init(memory);
    memory->fetch = fetch;
    memory->ctx = input;
    memory_begin(memory);
    process->memory = memory;
}

/* Reads a thread of a process that has this memory: what is read ends, and its texts do. */
static inline void read_thread(const struct runtime *runtime, struct runtime_process *process,
                               const struct runtime_thread *thread, struct input input)
{
    static struct runtime_answer answer;
    uint64_t addresses[8] = {0}; /* one that is on the stack is one less than a word there */
    struct memory memory;

    give_memory(process, &memory, &input);
    memcpy(addresses, input.data, input.size < sizeof(addresses) ? input.size : sizeof(addresses));
    runtime_read(runtime, process, thread, addresses, 8, &answer);
    assert(answer.count <= RUNTIME_FRAMES && answer.text_used <= RUNTIME_TEXT);
    for (uint32_t i = 0; i < answer.count; i++) {
        const struct runtime_frame *frame = &answer.frames[i];

        assert(frame->function + strlen(answer.text + frame->function) < answer.text_used);
        assert(frame->file + strlen(answer.text + frame->file) < answer.text_used);
    }
    memory_deinit(&memory);
}

/* Lists the threads of a process that has this memory. */
static inline void list_threads(const struct runtime *runtime, struct runtime_process *process,
                                struct input input)
{
    static struct runtime_threads threads;
    struct memory memory;

    give_memory(process, &memory, &input);
    runtime_list(runtime, process, &threads);
    assert(threads.count <= RUNTIME_THREADS);
    memory_deinit(&memory);
}

static inline void check_tasks(const struct tasks_answer *answer)
{
    assert(answer->frame_count <= TASKS_FRAMES && answer->group_count <= TASKS_GROUPS);
    assert(answer->text_used && answer->text_used <= TASKS_TEXT);
    for (uint32_t i = 0; i < answer->frame_count; i++) {
        assert(answer->frames[i].function < answer->text_used);
        assert(answer->frames[i].file < answer->text_used);
    }
    for (uint32_t i = 0; i < answer->group_count; i++) {
        assert(answer->groups[i].state < answer->text_used);
        assert(answer->groups[i].first + answer->groups[i].frames <= answer->frame_count);
    }
}

/* Reads the tasks of a process that has this memory. */
static inline void read_tasks(const struct runtime *runtime, struct runtime_process *process,
                              struct input input)
{
    static struct tasks_answer answer;
    struct memory memory;

    give_memory(process, &memory, &input);
    if (runtime_tasks(runtime, process, &answer))
        check_tasks(&answer);
    memory_deinit(&memory);
}

static inline void read_made(const struct runtime *runtime, struct runtime_process *process,
                             struct input input)
{
    struct runtime_node nodes[4] = {0};
    struct runtime_thread thread = {1, 0x20000};

    read_thread(runtime, process, &thread, input);
    read_tasks(runtime, process, input);
    if (!runtime->read_nodes)
        return;
    list_threads(runtime, process, input);
    memcpy(nodes, input.data, input.size < sizeof(nodes) ? input.size : sizeof(nodes));
    thread.nodes = nodes;
    thread.began_ns = UINT64_MAX;
    thread.node_count = sizeof(nodes) / sizeof(*nodes);
    read_thread(runtime, process, &thread, input);
}

#endif
