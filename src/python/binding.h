/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What the extension modules share: errors as exceptions, C structures as named tuples (a row a
 * member), objects that hold something to close. Limited API of Python 3.11: one build serves all
 * later releases.
 *
 * Threads  Everything here is called with the GIL held, unless it says otherwise.
 */
#ifndef PRCB_PYTHON_BINDING_H
#define PRCB_PYTHON_BINDING_H

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030b0000
#include <Python.h>

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <prcb/prcb.h>

/* ---- errors ------------------------------------------------------------- */

/* Raises prcb.Error(errno, words, offset); returns NULL. */
static inline PyObject *raise_error(const struct prcb_error *err)
{
    PyObject *module = PyImport_ImportModule("prcb._types");
    PyObject *type = module ? PyObject_GetAttrString(module, "Error") : NULL;
    PyObject *error = type ? PyObject_CallFunction(type, "isK", -err->code, err->text,
                                                   (unsigned long long)err->offset)
                           : NULL;

    if (error)
        PyErr_SetObject(type, error);
    Py_XDECREF(error);
    Py_XDECREF(type);
    Py_XDECREF(module);
    return NULL;
}

/* The same for calls that return a number alone. */
static inline PyObject *raise_code(int code, const char *words)
{
    struct prcb_error err = {.code = code};

    PyOS_snprintf(err.text, sizeof(err.text), "%s", words);
    return raise_error(&err);
}

/* ---- records ------------------------------------------------------------ */

enum field_kind {
    FIELD_U64,
    FIELD_U32,
    FIELD_U16,
    FIELD_U8,
    FIELD_TID,   /* pid_t; 0: None */
    FIELD_I32,   /* -1: None */
    FIELD_BOOL,  /* bool */
    FIELD_FLAG,  /* a bit of a uint32_t: `bit` */
    FIELD_TEXT,  /* const char *; NULL: None */
    FIELD_CHARS, /* char[] */
    FIELD_OWN,   /* made by `make` */
};

/* A member of a structure, and the item of a named tuple that it becomes. */
struct field {
    const char *name;
    enum field_kind kind;
    size_t offset;
    uint64_t has; /* present bit; 0: always there */
    uint32_t bit; /* FIELD_FLAG */
    PyObject *(*make)(const void *base);
};

static inline PyObject *field_text(const char *text)
{
    /* What comes from processes and files may be anything: never a UnicodeDecodeError. */
    if (!text)
        Py_RETURN_NONE;
    return PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "backslashreplace");
}

static inline PyObject *field_value(const struct field *f, const void *base, uint64_t present)
{
    const char *at = (const char *)base + f->offset;

    if (f->has && !(present & f->has))
        Py_RETURN_NONE;
    switch (f->kind) {
    case FIELD_U64:
        return PyLong_FromUnsignedLongLong(*(const uint64_t *)at);
    case FIELD_U32:
        return PyLong_FromUnsignedLong(*(const uint32_t *)at);
    case FIELD_U16:
        return PyLong_FromUnsignedLong(*(const uint16_t *)at);
    case FIELD_U8:
        return PyLong_FromUnsignedLong(*(const uint8_t *)at);
    case FIELD_TID:
        if (!*(const pid_t *)at)
            Py_RETURN_NONE;
        return PyLong_FromLong(*(const pid_t *)at);
    case FIELD_I32:
        if (*(const int32_t *)at == -1)
            Py_RETURN_NONE;
        return PyLong_FromLong(*(const int32_t *)at);
    case FIELD_BOOL:
        return PyBool_FromLong(*(const bool *)at);
    case FIELD_FLAG:
        return PyBool_FromLong((*(const uint32_t *)at & f->bit) != 0);
    case FIELD_TEXT:
        return field_text(*(const char *const *)at);
    case FIELD_CHARS:
        return field_text(at);
    case FIELD_OWN:
        return f->make(base);
    }
    Py_RETURN_NONE;
}

#define RECORD_FIELDS_MAX 40

/* A named tuple's type out of rows, which end with a name of NULL; added to the module. */
static inline PyTypeObject *record_type(PyObject *module, const char *full_name, const char *doc,
                                        const struct field *fields)
{
    PyStructSequence_Field rows[RECORD_FIELDS_MAX + 1] = {{NULL, NULL}};
    PyStructSequence_Desc desc = {.name = full_name, .doc = doc, .fields = rows};
    PyTypeObject *type;
    int n = 0;

    for (; fields[n].name && n < RECORD_FIELDS_MAX; n++)
        rows[n].name = fields[n].name;
    desc.n_in_sequence = n;
    type = PyStructSequence_NewType(&desc);
    if (type && PyModule_AddObjectRef(module, strrchr(full_name, '.') + 1, (PyObject *)type))
        Py_CLEAR(type);
    return type;
}

static inline PyObject *record_new(PyTypeObject *type, const struct field *fields, const void *base,
                                   uint64_t present)
{
    PyObject *record = PyStructSequence_New(type);

    for (Py_ssize_t i = 0; record && fields[i].name; i++) {
        PyObject *value = field_value(&fields[i], base, present);

        if (!value)
            Py_CLEAR(record);
        else
            PyStructSequence_SetItem(record, i, value);
    }
    return record;
}

/* Appends what is not NULL to a list, and lets go of it; false: an exception is set. */
static inline bool list_take(PyObject *list, PyObject *item)
{
    bool appended = item && !PyList_Append(list, item);

    Py_XDECREF(item);
    return appended;
}

/* ---- names ------------------------------------------------------------- */

struct name_row {
    const char *name; /* NULL: the end */
    unsigned value;
};

/* -1: an exception is set. NULL means the first row. */
static inline int name_value(const struct name_row *rows, const char *what, const char *name,
                             unsigned *ret)
{
    if (!name) {
        *ret = rows->value;
        return 0;
    }
    for (const struct name_row *row = rows; row->name; row++) {
        if (!strcmp(row->name, name)) {
            *ret = row->value;
            return 0;
        }
    }
    PyErr_Format(PyExc_ValueError, "unknown %s '%s'", what, name);
    return -1;
}

/* ---- types -------------------------------------------------------------- */

static inline PyTypeObject *add_type(PyObject *module, PyType_Spec *spec)
{
    PyTypeObject *type = (PyTypeObject *)PyType_FromSpec(spec);

    if (type && PyModule_AddType(module, type))
        Py_CLEAR(type);
    return type;
}

static inline PyObject *return_self(PyObject *self, PyObject *unused)
{
    return Py_NewRef(self);
}

/* The tail of every tp_dealloc of a heap type. */
static inline void free_object(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);

    PyObject_Free(self);
    Py_DECREF(type);
}

/* A new object, its part behind the head zeroed. */
static inline void *new_object(PyTypeObject *type, size_t size)
{
    PyObject *self = PyObject_Calloc(1, size);

    return self ? PyObject_Init(self, type) : PyErr_NoMemory();
}

#define METHOD(name, function, flags, doc)                                                         \
    {                                                                                              \
        name, (PyCFunction)(void (*)(void))(function), flags, doc                                  \
    }

/* ---- walks ---------------------------------------------------------------- */

/* Records are copied first: Python objects must not be made under the session's lock, for making
 * them may collect others, which close handles. Needs no GIL. */
struct copies {
    struct prcb_account *rows;
    size_t count, room;
};

static inline int copy_account(const struct prcb_account *a, void *ctx)
{
    struct copies *c = ctx;

    if (c->count == c->room) {
        size_t room = c->room ? c->room * 2 : 64;
        struct prcb_account *rows = realloc(c->rows, room * sizeof(*rows));

        if (!rows)
            return -ENOMEM;
        c->rows = rows;
        c->room = room;
    }
    c->rows[c->count++] = *a;
    return 0;
}

/* 0 or -errno; the rows are the caller's to free in any case. */
static inline int copy_accounts(struct prcb *p, struct copies *ret, struct prcb_error *err)
{
    int result = prcb_walk(p, copy_account, ret, err);

    if (result == -ENOMEM) {
        err->code = result;
        PyOS_snprintf(err->text, sizeof(err->text), "no memory for the accounts");
    }
    return result;
}

/* ---- sessions, for modules beside _prcb ------------------------------------ */

/* Something that must be closed before its session. */
struct child {
    struct child *next, **at; /* at NULL: in no list, closed */
    void (*close)(struct child *child);
};

#define SESSION_API_NAME "prcb._prcb._api"
struct session_api {
    /* The open session behind an object; NULL: an exception is set. A child that is not NULL is
     * closed before the session. */
    struct prcb *(*use)(PyObject *session, struct child *child);
    /* Closes the child, unless that was done, or a fork left it to the parent. */
    void (*forget)(PyObject *session, struct child *child);
    /* Around a call without the GIL: until the end, close() is refused. */
    void (*begin)(PyObject *session);
    void (*end)(PyObject *session);
    /* An Account. */
    PyObject *(*account)(const struct prcb_account *a);
};

#endif
