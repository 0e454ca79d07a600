/* SPDX-License-Identifier: BSD-2-Clause */
#include "python_layouts.h"

#include <stddef.h>

#define NONE PYTHON_ABSENT

/* Source: the headers of the releases named (Include/cpython, Include/internal), on 64 bits; the
 * debug information of builds of these says the same. */
static const struct python_layout layouts[] = {
    {/* 3.9.18 */
     .minor = 9,        .version = NONE,      .entry = PYTHON_EACH, .lines = PYTHON_LNOTAB,
     .kind_shift = 2,   .shim = NONE,         .interpreters = 32,   .next_interpreter = 0,
     .threads = 8,      .previous_thread = 0, .next_thread = 8,     .pthread = 176,
     .native_id = NONE, .frame = 24,          .cframe = NONE,       .back = 24,
     .code = 32,        .instruction = 104,   .owner = NONE,        .filename = 104,
     .name = 112,       .qualname = NONE,     .lines_at = 120,      .first_line = 40,
     .bytecode = NONE,  .bytes_size = 16,     .bytes_at = 32,       .text_length = 16,
     .text_state = 32,  .ascii = 48,          .compact = 72,        .gil_pointer = NONE,
     .gil_holder = 360, .gil_locked = 368,    .modules = 856},
    {/* 3.10.13 */
     .minor = 10,       .version = NONE,      .entry = PYTHON_EACH, .lines = PYTHON_LINETABLE,
     .kind_shift = 2,   .shim = NONE,         .interpreters = 32,   .next_interpreter = 0,
     .threads = 8,      .previous_thread = 0, .next_thread = 8,     .pthread = 176,
     .native_id = NONE, .frame = 24,          .cframe = NONE,       .back = 24,
     .code = 32,        .instruction = 96,    .owner = NONE,        .filename = 104,
     .name = 112,       .qualname = NONE,     .lines_at = 120,      .first_line = 40,
     .bytecode = NONE,  .bytes_size = 16,     .bytes_at = 32,       .text_length = 16,
     .text_state = 32,  .ascii = 48,          .compact = 72,        .gil_pointer = NONE,
     .gil_holder = 360, .gil_locked = 368,    .modules = 856},
    {/* 3.11.2, 3.11.7 */
     .minor = 11,       .version = NONE,      .entry = PYTHON_ENTRY, .lines = PYTHON_LOCATIONS,
     .kind_shift = 2,   .shim = NONE,         .interpreters = 40,    .next_interpreter = 0,
     .threads = 16,     .previous_thread = 0, .next_thread = 8,      .pthread = 152,
     .native_id = 160,  .frame = 8,           .cframe = 56,          .back = 48,
     .code = 32,        .instruction = 56,    .owner = 68,           .filename = 112,
     .name = 120,       .qualname = 128,      .lines_at = 136,       .first_line = 72,
     .bytecode = 184,   .bytes_size = 16,     .bytes_at = 32,        .text_length = 16,
     .text_state = 32,  .ascii = 48,          .compact = 72,         .gil_pointer = NONE,
     .gil_holder = 368, .gil_locked = 376,    .modules = 888},
    {/* 3.12.1 */
     .minor = 12,
     .version = 92,
     .entry = PYTHON_SHIM,
     .lines = PYTHON_LOCATIONS,
     .kind_shift = 2,
     .shim = 3,
     .interpreters = 40,
     .next_interpreter = 0,
     .threads = 72,
     .previous_thread = 0,
     .next_thread = 8,
     .pthread = 136,
     .native_id = 144,
     .frame = 0,
     .cframe = 56,
     .back = 8,
     .code = 0,
     .instruction = 56,
     .owner = 70,
     .filename = 112,
     .name = 120,
     .qualname = 128,
     .lines_at = 136,
     .first_line = 68,
     .bytecode = 192,
     .bytes_size = 16,
     .bytes_at = 32,
     .text_length = 16,
     .text_state = 32,
     .ascii = 40,
     .compact = 56,
     .gil_pointer = 384,
     .gil_holder = 8,
     .gil_locked = 16,
     .modules = 944},
    {/* 3.13: what _Py_DebugOffsets does not say; the rest is said */
     .minor = 13,
     .version = 92,
     .entry = PYTHON_SHIM,
     .lines = PYTHON_LOCATIONS,
     .kind_shift = 2,
     .shim = 3,
     .cframe = NONE,
     .gil_holder = 8,
     .gil_locked = 16},
    {/* 3.14: the same */
     .minor = 14,
     .version = NONE,
     .entry = PYTHON_SHIM,
     .lines = PYTHON_LOCATIONS,
     .kind_shift = 2,
     .shim = 3,
     .cframe = NONE,
     .gil_holder = 8,
     .gil_locked = 16},
};

#define SAID(member, word)                                                                         \
    {                                                                                              \
        offsetof(struct python_layout, member), word                                               \
    }

/* Source: struct _Py_DebugOffsets in Include/internal/pycore_runtime.h of 3.13.0. */
static const struct python_said said_13[] = {
    SAID(interpreters, 5), SAID(next_interpreter, 8),
    SAID(threads, 9),      SAID(modules, 11),
    SAID(gil_pointer, 14), SAID(previous_thread, 20),
    SAID(next_thread, 21), SAID(frame, 23),
    SAID(pthread, 24),     SAID(native_id, 25),
    SAID(back, 29),        SAID(code, 30),
    SAID(instruction, 31), SAID(owner, 33),
    SAID(filename, 35),    SAID(name, 36),
    SAID(qualname, 37),    SAID(lines_at, 38),
    SAID(first_line, 39),  SAID(bytecode, 43),
    SAID(bytes_size, 65),  SAID(bytes_at, 66),
    SAID(text_state, 68),  SAID(text_length, 69),
    SAID(ascii, 70),       {0, 0},
};

/* Source: struct _Py_DebugOffsets in Include/internal/pycore_debug_offsets.h of 3.14. */
static const struct python_said said_14[] = {
    SAID(interpreters, 5), SAID(next_interpreter, 8),
    SAID(threads, 9),      SAID(modules, 12),
    SAID(gil_pointer, 15), SAID(previous_thread, 23),
    SAID(next_thread, 24), SAID(frame, 26),
    SAID(pthread, 27),     SAID(native_id, 28),
    SAID(back, 32),        SAID(code, 33),
    SAID(instruction, 34), SAID(owner, 36),
    SAID(filename, 40),    SAID(name, 41),
    SAID(qualname, 42),    SAID(lines_at, 43),
    SAID(first_line, 44),  SAID(bytecode, 48),
    SAID(bytes_size, 75),  SAID(bytes_at, 76),
    SAID(text_state, 78),  SAID(text_length, 79),
    SAID(ascii, 80),       {0, 0},
};

/* Source: as of the others, and Modules/_asynciomodule.c. */
static const struct python_task_layout task_layouts[] = {
    {.minor = 9,
     .set = "_all_tasks",
     .members = PYTHON_DICT,
     .state = 80,
     .waiter = 144,
     .coroutine = 152,
     .frame = 16,
     .frame_state = NONE,
     .stack = 64,
     .stack_top = 72,
     .locals = NONE},
    {.minor = 10,
     .set = "_all_tasks",
     .members = PYTHON_DICT,
     .state = 88,
     .waiter = 152,
     .coroutine = 160,
     .frame = 16,
     .frame_state = 108,
     .stack = 64,
     .stack_is_count = true,
     .stack_top = 80,
     .locals = NONE},
    {.minor = 11,
     .set = "_all_tasks",
     .keys_by_log = true,
     .members = PYTHON_VALUES,
     .cached_keys = 872,
     .state = 88,
     .waiter = 128,
     .coroutine = 136,
     .frame_in_object = true,
     .frame = 80,
     .frame_state = 75,
     .stack = 72,
     .stack_is_count = true,
     .stack_top = 64,
     .locals = 76},
    {.minor = 12,
     .set = "_scheduled_tasks",
     .keys_by_log = true,
     .members = PYTHON_EITHER,
     .cached_keys = 880,
     .state = 88,
     .waiter = 128,
     .coroutine = 136,
     .frame_in_object = true,
     .frame = 72,
     .frame_state = 67,
     .stack = 72,
     .stack_is_count = true,
     .stack_top = 64,
     .locals = 72},
    {.minor = 13,
     .set = "_scheduled_tasks",
     .keys_by_log = true,
     .members = PYTHON_INLINE,
     .values_at = 8,
     .cached_keys = 880,
     .state = 96,
     .waiter = 112,
     .coroutine = 120,
     .frame_in_object = true,
     .frame = 72,
     .frame_state = 67,
     .stack = 72,
     .stack_is_count = true,
     .stack_top = 64,
     .locals = 72},
    {/* 3.14: a list of each thread, which is not read */
     .minor = 14,
     .keys_by_log = true},
};

const struct python_task_layout *python_task_layout_of(uint32_t minor)
{
    for (size_t i = 0; i < sizeof(task_layouts) / sizeof(*task_layouts); i++) {
        if (task_layouts[i].minor == minor)
            return &task_layouts[i];
    }
    return NULL;
}

const struct python_layout *python_layout_of(uint32_t minor)
{
    for (size_t i = 0; i < sizeof(layouts) / sizeof(*layouts); i++) {
        if (layouts[i].minor == minor)
            return &layouts[i];
    }
    return NULL;
}

const struct python_said *python_said_of(uint32_t minor)
{
    return minor == 13 ? said_13 : minor == 14 ? said_14 : NULL;
}
