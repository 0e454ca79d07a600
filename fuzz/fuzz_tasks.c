/* SPDX-License-Identifier: BSD-2-Clause
 *
 * A program that says it is Go's, with the table of its functions, and its memory, of which there
 * is a page at every address: each pointer leads on. What is read ends, and what is told holds
 * together.
 */
#include <stdlib.h>
#include <string.h>

#include "made_memory.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* version, bytes of the table (2), table, memory */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct tasks_answer answer;
    struct input input;
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
    input = (struct input){data + 3 + length, size - 3 - length};
    if (tasks_open(NULL, 0, &table, &tasks))
        return 0;
    tasks_set_place(tasks, 18 + data[0] % 9, 0x10000, 0x4000);
    tasks_memory(tasks)->fetch = fetch;
    tasks_memory(tasks)->ctx = &input;
    tasks_read(tasks, &answer);
    check_tasks(&answer);
    tasks_close(tasks);
    return 0;
}
