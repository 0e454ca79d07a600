/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The memory of a process that says it publishes spans: how its code gets to the variable, the
 * thread, then its pages (made_memory.h).
 */
#include "made_memory.h"
#include "spans.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct span_places places = {.count = 1};
    struct span_thread thread;
    struct span_answer answer;
    struct memory memory;
    struct input input;

    if (size < 32)
        return 0;
    places.rows[0].way = (enum span_way)(data[0] % 4);
    memcpy(&places.rows[0].at, data + 1, 8);
    memcpy(&places.rows[0].value, data + 9, 8);
    thread = (struct span_thread){.tid = 1 + data[17] % 4, .sp = 0x10000};
    if (data[17] & 16)
        memcpy(&thread.robust, data + 18, 8);
    input = (struct input){data + 26, size - 26};
    memory_init(&memory);
    memory.fetch = fetch;
    memory.ctx = &input;
    memory_begin(&memory);
    spans_read(&places, &memory, &thread, &answer);
    assert(answer.state <= SPAN_THERE);
    if (answer.state == SPAN_THERE) {
        static const unsigned char zero[16];

        assert(memcmp(answer.trace_id, zero, 16) != 0 && memcmp(answer.span_id, zero, 8) != 0);
    }
    memory_deinit(&memory);
    return 0;
}
