/* SPDX-License-Identifier: BSD-2-Clause
 *
 * prcb._stack: the stacks of waiting threads. A module of its own, for it loads libdw.
 */
#include "binding.h"

#include <errno.h>
#include <string.h>

#include <prcb/stack.h>

struct stacks {
    PyObject_HEAD PyObject *session;
    struct stacks_child {
        struct child child; /* first */
        struct prcb_stacks *s;
    } reader;
    bool busy; /* a call runs without the GIL */
};

static const struct session_api *api;
static PyTypeObject *stacks_type, *stack_type, *frame_type, *status_type;

static void reader_close(struct child *child)
{
    struct stacks_child *reader = (struct stacks_child *)child;

    prcb_stacks_close(reader->s);
    reader->s = NULL;
}

/* clang-format off */
#define F(member) offsetof(struct prcb_frame, member)
static const struct field frame_fields[] = {
    {"function", FIELD_TEXT, F(function), 0, 0, NULL},
    {"file", FIELD_TEXT, F(file), 0, 0, NULL},
    {"address", FIELD_U64, F(address), 0, 0, NULL},
    {"place", FIELD_U64, F(place), 0, 0, NULL},
    {NULL, 0, 0, 0, 0, NULL},
};
#undef F

static PyObject *make_kind(const void *base)
{
    static const char *const kinds[] = {"blocked", "idle", "either"};
    uint32_t kind = ((const struct prcb_stack *)base)->kind;

    return field_text(kind < 3 ? kinds[kind] : NULL);
}

static PyObject *make_frames(const void *base)
{
    const struct prcb_stack *stack = base;
    PyObject *list = PyList_New(0);

    for (uint32_t i = 0; list && i < stack->frame_count; i++) {
        if (!list_take(list, record_new(frame_type, frame_fields, &stack->frames[i], 0)))
            Py_CLEAR(list);
    }
    return list;
}

#define S(member) offsetof(struct prcb_stack, member)
static const struct field stack_fields[] = {
    {"word", FIELD_TEXT, S(word), 0, 0, NULL},
    {"kind", FIELD_OWN, 0, 0, 0, make_kind},
    {"frames", FIELD_OWN, 0, 0, 0, make_frames},
    {"complete", FIELD_FLAG, S(flags), 0, PRCB_STACK_COMPLETE, NULL},
    {"cut", FIELD_FLAG, S(flags), 0, PRCB_STACK_CUT, NULL},
    {"id", FIELD_U32, S(id), 0, 0, NULL},
    {"key", FIELD_U64, S(key), 0, 0, NULL},
    {"switches", FIELD_U64, S(switches), 0, 0, NULL},
    {NULL, 0, 0, 0, 0, NULL},
};
#undef S

#define S(member) offsetof(struct prcb_stacks_status, member)
static const struct field status_fields[] = {
    {"asked", FIELD_U64, S(asked), 0, 0, NULL},
    {"remembered", FIELD_U64, S(remembered), 0, 0, NULL},
    {"unwound", FIELD_U64, S(unwound), 0, 0, NULL},
    {"moved", FIELD_U64, S(moved), 0, 0, NULL},
    {"cpu_ns", FIELD_U64, S(cpu_ns), 0, 0, NULL},
    {NULL, 0, 0, 0, 0, NULL},
};
#undef S
/* clang-format on */

static PyObject *stacks_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"session", "max_frames", "stack_bytes", NULL};
    struct prcb_stacks_options opts = {.size = sizeof(opts)};
    unsigned int max_frames = 0, stack_bytes = 0;
    struct prcb_error err;
    struct stacks *s;
    PyObject *session;
    struct prcb *p;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|$II:Stacks", names, &session, &max_frames,
                                     &stack_bytes) ||
        !(p = api->use(session, NULL)))
        return NULL;
    opts.max_frames = max_frames;
    opts.stack_bytes = stack_bytes;
    s = new_object(stacks_type, sizeof(*s));
    if (!s)
        return NULL;
    if (prcb_stacks_open(p, &opts, &s->reader.s, &err)) {
        s->reader.s = NULL;
        Py_DECREF(s);
        return raise_error(&err);
    }
    s->reader.child.close = reader_close;
    s->session = Py_NewRef(session);
    api->use(session, &s->reader.child);
    return (PyObject *)s;
}

static void stacks_dealloc(PyObject *self)
{
    struct stacks *s = (struct stacks *)self;

    if (s->session)
        api->forget(s->session, &s->reader.child);
    Py_XDECREF(s->session);
    free_object(self);
}

static PyObject *stacks_close(PyObject *self, PyObject *args)
{
    struct stacks *s = (struct stacks *)self;

    if (s->busy)
        return raise_code(-EBUSY, "the reader of stacks cannot be closed: another thread is in a "
                                  "call of it");
    api->forget(s->session, &s->reader.child);
    Py_RETURN_NONE;
}

static struct prcb *stacks_use(struct stacks *s)
{
    struct prcb *p = api->use(s->session, NULL);

    if (!p)
        return NULL;
    if (!s->reader.s) {
        PyErr_SetString(PyExc_ValueError, "the reader of stacks is closed");
        return NULL;
    }
    if (s->busy) {
        raise_code(-EBUSY, "the reader of stacks serves another thread");
        return NULL;
    }
    return p;
}

/* An unsigned attribute of a record; false: an exception is set. */
static bool attribute(PyObject *record, const char *name, uint64_t *ret)
{
    PyObject *value = PyObject_GetAttrString(record, name);

    *ret = value ? PyLong_AsUnsignedLongLong(value) : 0;
    Py_XDECREF(value);
    return !PyErr_Occurred();
}

/* The wait that the account shows is named by key and switches; a thread that has run since
 * then is in another wait. */
static int read_wait(struct prcb *p, struct prcb_stacks *s, uint64_t key, uint64_t switches,
                     struct prcb_stack *ret, struct prcb_error *err)
{
    struct prcb_account a = {.size = sizeof(a)};
    struct prcb_thread *thread;
    int result = prcb_thread_open_key(p, key, &thread, err);

    if (result)
        return result;
    result = prcb_thread_read(thread, &a);
    prcb_thread_close(thread);
    if (!result && a.switches == switches)
        return prcb_stacks_read(s, &a, ret, err);
    *err = (struct prcb_error){.code = result ? result : -EAGAIN};
    PyOS_snprintf(err->text, sizeof(err->text), "%s",
                  result ? "the thread's account cannot be read" : "the thread has run since");
    return err->code;
}

static PyObject *stacks_read(PyObject *self, PyObject *account)
{
    struct stacks *s = (struct stacks *)self;
    struct prcb *p = stacks_use(s);
    struct prcb_stack stack = {.size = sizeof(stack)};
    uint64_t key, switches;
    struct prcb_error err;
    int result;

    if (!p || !attribute(account, "key", &key) || !attribute(account, "switches", &switches))
        return NULL;
    s->busy = true;
    api->begin(s->session);
    Py_BEGIN_ALLOW_THREADS;
    result = read_wait(p, s->reader.s, key, switches, &stack, &err);
    Py_END_ALLOW_THREADS;
    api->end(s->session);
    s->busy = false;
    if (result)
        return raise_error(&err);
    return record_new(stack_type, stack_fields, &stack, 0);
}

/* A thread that waits, its stack, or why there is none. */
struct found {
    struct prcb_account *account;
    struct prcb_stack stack;
    int result;
    char text[sizeof(((struct prcb_error *)NULL)->text)];
};

/* (account, stack, None) or (account, None, words). */
static PyObject *found_tuple(const struct found *f)
{
    PyObject *account = api->account(f->account), *stack = NULL, *words = NULL, *tuple = NULL;

    if (account) {
        stack = f->result ? Py_NewRef(Py_None) : record_new(stack_type, stack_fields, &f->stack, 0);
        words = field_text(f->result ? f->text : NULL);
    }
    if (stack && words)
        tuple = PyTuple_Pack(3, account, stack, words);
    Py_XDECREF(words);
    Py_XDECREF(stack);
    Py_XDECREF(account);
    return tuple;
}

/* In one stretch without the GIL: whoever waits for the GIL must find it waiting again, and
 * each return to Python would take as long as their waits. */
static PyObject *stacks_waiting(PyObject *self, PyObject *args)
{
    struct stacks *s = (struct stacks *)self;
    struct prcb *p = stacks_use(s);
    struct copies copies = {NULL, 0, 0};
    struct found *found = NULL;
    PyObject *list = NULL;
    struct prcb_error err;
    size_t count = 0;
    int result;

    if (!p)
        return NULL;
    s->busy = true;
    api->begin(s->session);
    Py_BEGIN_ALLOW_THREADS;
    result = copy_accounts(p, &copies, &err);
    found = result ? NULL : calloc(copies.count + 1, sizeof(*found));
    for (size_t i = 0; found && i < copies.count; i++) {
        struct prcb_account *a = &copies.rows[i];
        struct found *f = &found[count];

        if (a->flags & (PRCB_ACCOUNT_RUNNING | PRCB_ACCOUNT_EXITED | PRCB_ACCOUNT_KTHREAD))
            continue;
        f->account = a;
        f->stack.size = sizeof(f->stack);
        f->result = prcb_stacks_read(s->reader.s, a, &f->stack, &err);
        if (f->result)
            memcpy(f->text, err.text, sizeof(f->text));
        count++;
    }
    Py_END_ALLOW_THREADS;
    api->end(s->session);
    s->busy = false;
    if (result)
        raise_error(&err);
    else
        list = found ? PyList_New(0) : PyErr_NoMemory();
    for (size_t i = 0; list && i < count; i++) {
        if (!list_take(list, found_tuple(&found[i])))
            Py_CLEAR(list);
    }
    free(found);
    free(copies.rows);
    return list;
}

static PyObject *stacks_status(PyObject *self, PyObject *args)
{
    struct stacks *s = (struct stacks *)self;
    struct prcb_stacks_status status = {.size = sizeof(status)};
    int result;

    if (!stacks_use(s))
        return NULL;
    result = prcb_stacks_status(s->reader.s, &status);
    if (result)
        return raise_code(result, "the reader's status cannot be read");
    return record_new(status_type, status_fields, &status, 0);
}

static PyMethodDef stacks_methods[] = {
    METHOD("read", stacks_read, METH_O,
           "read(account): the stack of the wait that the account shows"),
    METHOD("waiting", stacks_waiting, METH_NOARGS,
           "All threads of the session that are off the processor: (account, stack or None, why "
           "there is no stack or None)."),
    METHOD("status", stacks_status, METH_NOARGS, "What the reader has done so far."),
    METHOD("close", stacks_close, METH_NOARGS, "Close the reader."),
    METHOD("__enter__", return_self, METH_NOARGS, NULL),
    METHOD("__exit__", stacks_close, METH_VARARGS, NULL),
    {NULL, NULL, 0, NULL},
};
static PyType_Slot stacks_slots[] = {
    {Py_tp_doc, "Stacks(session): reads the stacks of waiting threads"},
    {Py_tp_new, stacks_new},
    {Py_tp_dealloc, stacks_dealloc},
    {Py_tp_methods, stacks_methods},
    {0, NULL},
};
static PyType_Spec stacks_spec = {.name = "prcb.Stacks",
                                  .basicsize = sizeof(struct stacks),
                                  .flags = Py_TPFLAGS_DEFAULT,
                                  .slots = stacks_slots};
static struct PyModuleDef module_def = {PyModuleDef_HEAD_INIT, .m_name = "prcb._stack",
                                        .m_doc = "Stacks of waiting threads.", .m_size = -1};

PyMODINIT_FUNC PyInit__stack(void)
{
    PyObject *module;

    api = PyCapsule_Import(SESSION_API_NAME, 0);
    module = api ? PyModule_Create(&module_def) : NULL;
    if (module &&
        (!(stacks_type = add_type(module, &stacks_spec)) ||
         !(frame_type = record_type(module, "prcb.Frame", "A call.", frame_fields)) ||
         !(stack_type = record_type(module, "prcb.Stack", "Where a thread waits.", stack_fields)) ||
         !(status_type =
               record_type(module, "prcb.StacksStatus", "What a reader has done.", status_fields))))
        Py_CLEAR(module);
    return module;
}
