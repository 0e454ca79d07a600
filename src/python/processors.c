/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Views of the machine's processors: prcb.processors().
 */
#include "module.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <prcb/processors.h>

struct view {
    PyObject_HEAD struct prcb_processors *v; /* NULL: closed */
};

static PyTypeObject *view_type, *processor_type, *idle_state_type, *times_type;

/* clang-format off */
#define I(member) offsetof(struct prcb_idle_state, member)
static const struct field idle_state_fields[] = {
    {"name", FIELD_CHARS, I(name), 0, 0, NULL},
    {"entries", FIELD_U64, I(entries), 0, 0, NULL},
    {"residency_ns", FIELD_U64, I(residency_ns), 0, 0, NULL},
    {NULL, 0, 0, 0, 0, NULL},
};
#undef I

static PyObject *make_tier(const void *base)
{
    return field_text(prcb_tier_name(((const struct prcb_processor *)base)->tier));
}

static PyObject *make_idle_states(const void *base)
{
    const struct prcb_processor *p = base;
    PyObject *list = PyList_New(0);

    for (uint32_t i = 0; list && i < p->idle_state_count && i < PRCB_IDLE_STATES_MAX; i++) {
        if (!list_take(list, record_new(idle_state_type, idle_state_fields, &p->idle_states[i], 0)))
            Py_CLEAR(list);
    }
    return list;
}

static PyObject *make_idle_state(const void *base)
{
    const struct prcb_processor *p = base;

    if (!(p->flags & PRCB_CPU_IDLE))
        Py_RETURN_NONE;
    return PyLong_FromUnsignedLong(p->idle_state);
}

#define P(member) offsetof(struct prcb_processor, member)
static const struct field processor_fields[] = {
    {"number", FIELD_U32, P(number), 0, 0, NULL},
    {"tier", FIELD_OWN, 0, 0, 0, make_tier},
    {"online", FIELD_FLAG, P(flags), 0, PRCB_CPU_ONLINE, NULL},
    {"idle", FIELD_FLAG, P(flags), 0, PRCB_CPU_IDLE, NULL},
    {"orphan", FIELD_FLAG, P(flags), 0, PRCB_CPU_ORPHAN, NULL},
    {"wall_ns", FIELD_U64, P(wall_ns), PRCB_CPU_HAS_TIMES, 0, NULL},
    {"idle_ns", FIELD_U64, P(idle_ns), PRCB_CPU_HAS_TIMES, 0, NULL},
    {"user_ns", FIELD_U64, P(user_ns), PRCB_CPU_HAS_TIMES, 0, NULL},
    {"kernel_ns", FIELD_U64, P(kernel_ns), PRCB_CPU_HAS_TIMES, 0, NULL},
    {"dpc_ns", FIELD_U64, P(dpc_ns), PRCB_CPU_HAS_DPC, 0, NULL},
    {"interrupt_ns", FIELD_U64, P(interrupt_ns), PRCB_CPU_HAS_INTERRUPT, 0, NULL},
    {"steal_ns", FIELD_U64, P(steal_ns), PRCB_CPU_HAS_STEAL, 0, NULL},
    {"interrupts", FIELD_U64, P(interrupts), PRCB_CPU_HAS_INTERRUPTS, 0, NULL},
    {"dpcs", FIELD_U64, P(dpcs), PRCB_CPU_HAS_DPCS, 0, NULL},
    {"switches", FIELD_U64, P(switches), PRCB_CPU_HAS_SWITCHES, 0, NULL},
    {"missed_switches", FIELD_U64, P(missed_switches), PRCB_CPU_HAS_MISSED, 0, NULL},
    {"idle_entries", FIELD_U64, P(idle_entries), PRCB_CPU_HAS_IDLE_ENTRIES, 0, NULL},
    {"idle_states", FIELD_OWN, 0, PRCB_CPU_HAS_IDLE_STATES, 0, make_idle_states},
    {"idle_state", FIELD_OWN, 0, PRCB_CPU_HAS_IDLE_STATE, 0, make_idle_state},
    {"mhz", FIELD_U32, P(mhz), PRCB_CPU_HAS_MHZ, 0, NULL},
    {"max_mhz", FIELD_U32, P(max_mhz), PRCB_CPU_HAS_MAX_MHZ, 0, NULL},
    {"limit_mhz", FIELD_U32, P(limit_mhz), PRCB_CPU_HAS_LIMIT_MHZ, 0, NULL},
    {"min_mhz", FIELD_U32, P(min_mhz), PRCB_CPU_HAS_MIN_MHZ, 0, NULL},
    {"nominal_mhz", FIELD_U32, P(nominal_mhz), PRCB_CPU_HAS_NOMINAL_MHZ, 0, NULL},
    {"performance_permille", FIELD_U32, P(performance_permille), PRCB_CPU_HAS_PERFORMANCE, 0, NULL},
    {"throttles", FIELD_U64, P(throttles), PRCB_CPU_HAS_THROTTLES, 0, NULL},
    {"tid", FIELD_U32, P(tid), PRCB_CPU_HAS_THREAD, 0, NULL},
    {"running_ns", FIELD_U64, P(running_ns), PRCB_CPU_HAS_RUNNING, 0, NULL},
    {NULL, 0, 0, 0, 0, NULL},
};
#undef P

static const struct name_row members[] = {
    {"wall_ns", PRCB_CPU_HAS_TIMES},     {"idle_ns", PRCB_CPU_HAS_TIMES},
    {"user_ns", PRCB_CPU_HAS_TIMES},     {"kernel_ns", PRCB_CPU_HAS_TIMES},
    {"dpc_ns", PRCB_CPU_HAS_DPC},        {"interrupt_ns", PRCB_CPU_HAS_INTERRUPT},
    {"steal_ns", PRCB_CPU_HAS_STEAL},    {"interrupts", PRCB_CPU_HAS_INTERRUPTS},
    {"dpcs", PRCB_CPU_HAS_DPCS},         {"switches", PRCB_CPU_HAS_SWITCHES},
    {"missed_switches", PRCB_CPU_HAS_MISSED}, {"idle_entries", PRCB_CPU_HAS_IDLE_ENTRIES},
    {"idle_states", PRCB_CPU_HAS_IDLE_STATES}, {"idle_state", PRCB_CPU_HAS_IDLE_STATE},
    {"mhz", PRCB_CPU_HAS_MHZ},           {"max_mhz", PRCB_CPU_HAS_MAX_MHZ},
    {"limit_mhz", PRCB_CPU_HAS_LIMIT_MHZ}, {"min_mhz", PRCB_CPU_HAS_MIN_MHZ},
    {"nominal_mhz", PRCB_CPU_HAS_NOMINAL_MHZ},
    {"performance_permille", PRCB_CPU_HAS_PERFORMANCE},
    {"throttles", PRCB_CPU_HAS_THROTTLES}, {"tid", PRCB_CPU_HAS_THREAD},
    {"running_ns", PRCB_CPU_HAS_RUNNING}, {NULL, 0},
};
/* clang-format on */

static struct prcb_processors *view_use(PyObject *self)
{
    struct prcb_processors *v = ((struct view *)self)->v;

    if (!v)
        PyErr_SetString(PyExc_ValueError, "the view of the processors is closed");
    return v;
}

static PyObject *view_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"tier", "root", NULL};
    struct prcb_processors_options opts = {.size = sizeof(opts)};
    const char *tier = NULL;
    PyObject *root = NULL;
    struct prcb_error err;
    unsigned value;
    struct view *v;
    int result;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|z$O&:processors", names, &tier,
                                     PyUnicode_FSConverter, &root))
        return NULL;
    v = tier_value(tier, &value) ? NULL : new_object(view_type, sizeof(*v));
    if (!v) {
        Py_XDECREF(root);
        return NULL;
    }
    opts.tier = value;
    opts.root = root ? PyBytes_AsString(root) : NULL;
    Py_BEGIN_ALLOW_THREADS;
    result = prcb_processors_open(&opts, &v->v, &err);
    Py_END_ALLOW_THREADS;
    Py_XDECREF(root);
    if (result) {
        v->v = NULL;
        Py_DECREF(v);
        return raise_error(&err);
    }
    return (PyObject *)v;
}

static PyObject *view_close(PyObject *self, PyObject *args)
{
    struct view *v = (struct view *)self;
    struct prcb_processors *open = v->v;

    v->v = NULL;
    prcb_processors_close(open);
    Py_RETURN_NONE;
}

static void view_dealloc(PyObject *self)
{
    prcb_processors_close(((struct view *)self)->v);
    free_object(self);
}

static PyObject *view_read(PyObject *self, PyObject *arg)
{
    struct prcb_processors *v = view_use(self);
    struct prcb_processor p = {.size = sizeof(p)};
    char words[80];
    long number;
    int result;

    if (!v || ((number = PyLong_AsLong(arg)) == -1 && PyErr_Occurred()))
        return NULL;
    result = number < 0 || (uint64_t)number > UINT32_MAX
                 ? -ENXIO
                 : prcb_processor_read(v, (uint32_t)number, &p);
    if (!result)
        return record_new(processor_type, processor_fields, &p, p.present);
    PyOS_snprintf(words, sizeof(words),
                  result == -ENXIO ? "this machine has no processor %ld"
                                   : "processor %ld cannot be read: try again",
                  number);
    return raise_code(result, words);
}

static PyObject *view_refresh(PyObject *self, PyObject *args)
{
    struct prcb_processors *v = view_use(self);
    struct prcb_error err;

    if (!v)
        return NULL;
    if (prcb_processors_refresh(v, &err))
        return raise_error(&err);
    Py_RETURN_NONE;
}

/* The times' members that a record lacks are 0 there; here they are None. Which those are is the
 * same for all processors of a view. */
#define T(member) offsetof(struct prcb_processor_times, member)
static const struct field times_fields[] = {
    {"wall_ns", FIELD_U64, T(wall_ns), PRCB_CPU_HAS_TIMES, 0, NULL},
    {"idle_ns", FIELD_U64, T(idle_ns), PRCB_CPU_HAS_TIMES, 0, NULL},
    {"user_ns", FIELD_U64, T(user_ns), PRCB_CPU_HAS_TIMES, 0, NULL},
    {"kernel_ns", FIELD_U64, T(kernel_ns), PRCB_CPU_HAS_TIMES, 0, NULL},
    {"dpc_ns", FIELD_U64, T(dpc_ns), PRCB_CPU_HAS_DPC, 0, NULL},
    {"interrupt_ns", FIELD_U64, T(interrupt_ns), PRCB_CPU_HAS_INTERRUPT, 0, NULL},
    {"steal_ns", FIELD_U64, T(steal_ns), PRCB_CPU_HAS_STEAL, 0, NULL},
    {NULL, 0, 0, 0, 0, NULL},
};
#undef T

static PyObject *view_times(PyObject *self, PyObject *args)
{
    struct prcb_processors *v = view_use(self);
    uint32_t count = v ? prcb_processors_count(v) : 0;
    struct prcb_processor_times *times = v ? calloc(count, sizeof(*times)) : NULL;
    uint64_t present = 0;
    PyObject *list;
    int result;

    if (!v)
        return NULL;
    if (!times)
        return PyErr_NoMemory();
    for (const struct field *f = times_fields; f->name; f++) {
        if (!prcb_processor_absent_reason(v, f->has))
            present |= f->has;
    }
    result = prcb_processors_times(v, times, sizeof(*times), count);
    list = result ? raise_code(result, "the processors' times cannot be read: try again")
                  : PyList_New(0);
    for (uint32_t i = 0; list && i < count; i++) {
        if (!list_take(list, record_new(times_type, times_fields, &times[i], present)))
            Py_CLEAR(list);
    }
    free(times);
    return list;
}

static PyObject *view_absent_reason(PyObject *self, PyObject *args)
{
    struct prcb_processors *v = view_use(self);
    const char *name;
    unsigned member;

    if (!v || !PyArg_ParseTuple(args, "s:absent_reason", &name) ||
        name_value(members, "member that can be absent:", name, &member))
        return NULL;
    return field_text(prcb_processor_absent_reason(v, member));
}

static Py_ssize_t view_length(PyObject *self)
{
    struct prcb_processors *v = view_use(self);

    return v ? (Py_ssize_t)prcb_processors_count(v) : -1;
}

static PyObject *view_tier(PyObject *self, void *closure)
{
    struct prcb_processors *v = view_use(self);

    return v ? field_text(prcb_tier_name(prcb_processors_tier(v))) : NULL;
}

static PyObject *view_tier_reason(PyObject *self, void *closure)
{
    struct prcb_processors *v = view_use(self);

    return v ? field_text(prcb_processors_tier_reason(v)) : NULL;
}

static PyMethodDef view_methods[] = {
    METHOD("read", view_read, METH_O, "read(number): a processor since the view was opened"),
    METHOD("times", view_times, METH_NOARGS, "The times alone, of all processors."),
    METHOD("refresh", view_refresh, METH_NOARGS,
           "Look again at what is not kept current in memory; on the perf tier, at everything."),
    METHOD("absent_reason", view_absent_reason, METH_VARARGS,
           "absent_reason(name): why records lack a member; None: they have it"),
    METHOD("close", view_close, METH_NOARGS, "Close the view."),
    METHOD("__enter__", return_self, METH_NOARGS, NULL),
    METHOD("__exit__", view_close, METH_VARARGS, NULL),
    {NULL, NULL, 0, NULL},
};
static PyGetSetDef view_getset[] = {
    {"tier", view_tier, NULL, "'daemon', 'bpf' or 'perf'", NULL},
    {"tier_reason", view_tier_reason, NULL, "why it is not a better one, or None", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
static PyType_Slot view_slots[] = {
    {Py_tp_doc, "A view of all processors; len() is how many the machine may have."},
    {Py_tp_new, view_new},
    {Py_tp_dealloc, view_dealloc},
    {Py_tp_methods, view_methods},
    {Py_tp_getset, view_getset},
    {Py_sq_length, view_length},
    {0, NULL},
};
static PyType_Spec view_spec = {.name = "prcb.Processors",
                                .basicsize = sizeof(struct view),
                                .flags = Py_TPFLAGS_DEFAULT,
                                .slots = view_slots};

bool processors_add(PyObject *module)
{
    return (view_type = add_type(module, &view_spec)) &&
           (idle_state_type =
                record_type(module, "prcb.IdleState", "An idle state.", idle_state_fields)) &&
           (times_type =
                record_type(module, "prcb.ProcessorTimes", "A processor's times.", times_fields)) &&
           (processor_type = record_type(module, "prcb.Processor", "A processor at one moment.",
                                         processor_fields));
}
