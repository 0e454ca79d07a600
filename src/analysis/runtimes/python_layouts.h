/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Where CPython's structures keep what is read of them: a row a version. Up to 3.12 offsets are
 * the ones of its headers, which a minor release does not change; from 3.13 on the runtime says
 * them itself (_Py_DebugOffsets), and a row is where in that table each is said.
 */
#ifndef PRCB_RUNTIMES_PYTHON_LAYOUTS_H
#define PRCB_RUNTIMES_PYTHON_LAYOUTS_H

#include <stdbool.h>
#include <stdint.h>

#define PYTHON_ABSENT UINT32_MAX

enum python_entry {
    PYTHON_EACH,  /* each frame is a call of the interpreter's function */
    PYTHON_ENTRY, /* a frame that is one says so */
    PYTHON_SHIM,  /* a frame that is none of Python's stands between */
};

enum python_lines { PYTHON_LNOTAB, PYTHON_LINETABLE, PYTHON_LOCATIONS };

struct python_layout {
    uint32_t minor;
    enum python_entry entry;
    enum python_lines lines;
    uint32_t kind_shift; /* of a text's state: bits before its kind */
    uint32_t shim;       /* the least `owner` of a frame that is none of Python's */
    /* _PyRuntimeState */
    uint32_t interpreters;
    /* PyInterpreterState */
    uint32_t next_interpreter, threads, modules;
    /* PyThreadState; frame: the current one, or with `cframe` where that is said */
    uint32_t previous_thread, next_thread, pthread, native_id, frame, cframe;
    /* PyFrameObject, _PyInterpreterFrame; instruction: a number before 3.11, then a pointer */
    uint32_t back, code, instruction, owner;
    /* PyCodeObject */
    uint32_t filename, name, qualname, lines_at, first_line, bytecode;
    uint32_t version; /* a number that no other code object has */
    /* PyBytesObject, PyUnicodeObject; ascii: where the bytes of a plain text are, compact: of
     * others */
    uint32_t bytes_size, bytes_at, text_length, text_state, ascii, compact;
    /* Who has the lock: in _PyRuntimeState, or with gil_pointer behind PyInterpreterState's. */
    uint32_t gil_pointer, gil_holder, gil_locked;
};

/* NULL: not known */
const struct python_layout *python_layout_of(uint32_t minor);

/* Where an instance has its members: in a dictionary, or before that is asked for in values, which
 * a word of its own points to, or the one of the dictionary, or which are behind the instance. */
enum python_members { PYTHON_DICT, PYTHON_VALUES, PYTHON_EITHER, PYTHON_INLINE };

/* What is read of asyncio's tasks. */
struct python_task_layout {
    uint32_t minor;
    const char *set;  /* of the module asyncio.tasks; NULL: not known */
    bool keys_by_log; /* the size of PyDictKeysObject is a power's exponent, else a number */
    enum python_members members;
    uint32_t values_at;                /* PyDictValues */
    uint32_t cached_keys;              /* PyHeapTypeObject */
    uint32_t state, waiter, coroutine; /* TaskObj */
    /* PyCoroObject: its frame, or a pointer to that; frame_state: in what the frame is in */
    bool frame_in_object, stack_is_count;
    uint32_t frame, frame_state;
    uint32_t stack, stack_top; /* of the frame: its values, and behind the last of them */
    uint32_t locals;           /* PyCodeObject: how many of these are none of the stack */
};

/* NULL: not known */
const struct python_task_layout *python_task_layout_of(uint32_t minor);

/* Where _Py_DebugOffsets says a member of the layout: the number of its word. */
struct python_said {
    uint32_t member; /* offset in struct python_layout */
    uint32_t word;
};

/* Of a version that says its own; NULL: not known, or it does not. The last row has word 0. */
const struct python_said *python_said_of(uint32_t minor);

#endif
