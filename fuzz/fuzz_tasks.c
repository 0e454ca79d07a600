/* SPDX-License-Identifier: BSD-2-Clause
 *
 * A program that says it is Go's, with the table of its functions, and its memory, of which there
 * is a page at every address: each pointer leads on. What is read ends, and what is told holds
 * together.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "made_memory.h"
#include "tasks.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* There are so many goroutines that reading them all takes seconds. */
struct bounded {
    struct input input;
    unsigned left; /* pages */
};

static bool fetch_bounded(void *ctx, uint64_t address, unsigned char *to)
{
    struct bounded *bounded = ctx;

    if (!bounded->left)
        return false;
    bounded->left--;
    return fetch(&bounded->input, address, to);
}

static void check(const struct tasks_answer *answer)
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

/* version, bytes of the table (2), table, memory */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct tasks_answer answer;
    struct bounded bounded;
    struct go_table table;
    struct tasks *tasks;
    uint16_t length;

    if (size < 4)
        return 0;
    memcpy(&length, data + 1, sizeof(length));
    if (length >= size - 3 || go_table_open(data + 3, length, &table))
        return 0;
    table.address = table.text;
    table.extra = data;
    table.extra_size = length;
    bounded = (struct bounded){{data + 3 + length, size - 3 - length}, 2000};
    if (tasks_open(NULL, 0, &table, &tasks))
        return 0;
    tasks_set_place(tasks, 18 + data[0] % 9, 0x10000, 0x4000);
    tasks_memory(tasks)->fetch = fetch_bounded;
    tasks_memory(tasks)->ctx = &bounded;
    tasks_read(tasks, &answer);
    check(&answer);
    tasks_close(tasks);
    return 0;
}
