/* SPDX-License-Identifier: BSD-2-Clause
 *
 * prcb._windows: layouts of NT's structures, and crash dumps. A dump and all that was read of it
 * are plain values; the file stays open until the dump is closed or collected.
 */
#include "binding.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <prcb/dump.h>
#include <prcb/layout.h>

/* ---- layouts ------------------------------------------------------------- */

struct layout {
    PyObject_HEAD struct prcb_layout *l;
};

static PyTypeObject *layout_type, *field_type, *version_type;

/* clang-format off */
static PyObject *make_field_type(const void *base)
{
    char text[128];

    prcb_layout_type_text(base, text, sizeof(text));
    return field_text(text);
}

static PyObject *make_bits(const void *base)
{
    const struct prcb_layout_field *f = base;

    if (!f->bit_width)
        Py_RETURN_NONE;
    return Py_BuildValue("(II)", (unsigned)f->bit_first, (unsigned)f->bit_width);
}

static PyObject *make_field_kind(const void *base)
{
    static const char *const kinds[] = {"unsigned", "signed", "pointer", "enum",
                                        "nested",   "inline", "opaque"};

    return field_text(kinds[((const struct prcb_layout_field *)base)->kind]);
}

#define F(member) offsetof(struct prcb_layout_field, member)
static const struct field field_fields[] = {
    {"name", FIELD_TEXT, F(name), 0, 0, NULL},
    {"type", FIELD_OWN, 0, 0, 0, make_field_type},
    {"kind", FIELD_OWN, 0, 0, 0, make_field_kind},
    {"offset", FIELD_U32, F(offset), 0, 0, NULL},
    {"size", FIELD_U32, F(size), 0, 0, NULL},
    {"count", FIELD_U32, F(count), 0, 0, NULL},
    {"bits", FIELD_OWN, 0, 0, 0, make_bits},
    {"source", FIELD_TEXT, F(source), 0, 0, NULL},
    {NULL, 0, 0, 0, 0, NULL},
};
#undef F

#define V(member) offsetof(struct prcb_layout_version, member)
static const struct field version_fields[] = {
    {"id", FIELD_U32, V(id), 0, 0, NULL},
    {"name", FIELD_TEXT, V(name), 0, 0, NULL},
    {"key", FIELD_TEXT, V(key), 0, 0, NULL},
    {"release", FIELD_TEXT, V(release), 0, 0, NULL},
    {"major", FIELD_U16, V(major), 0, 0, NULL},
    {"minor", FIELD_U16, V(minor), 0, 0, NULL},
    {"build", FIELD_U32, V(build), 0, 0, NULL},
    {"revision", FIELD_U32, V(revision), 0, 0, NULL},
    {"x86", FIELD_BOOL, V(x86), 0, 0, NULL},
    {"x64", FIELD_BOOL, V(x64), 0, 0, NULL},
    {NULL, 0, 0, 0, 0, NULL},
};
#undef V
/* clang-format on */

static PyObject *layout_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"structure", "version", "arch", NULL};
    const char *structure, *version, *arch_name = "x64";
    struct prcb_error err;
    struct prcb_layout *l;
    struct layout *layout;
    enum prcb_arch arch;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "ss|s:layout", names, &structure, &version,
                                     &arch_name))
        return NULL;
    if (prcb_arch_parse(arch_name, &arch, &err) ||
        prcb_layout_find(structure, version, arch, &l, &err))
        return raise_error(&err);
    layout = new_object(layout_type, sizeof(*layout));
    if (!layout) {
        prcb_layout_close(l);
        return NULL;
    }
    layout->l = l;
    return (PyObject *)layout;
}

static void layout_dealloc(PyObject *self)
{
    prcb_layout_close(((struct layout *)self)->l);
    free_object(self);
}

#define L(self) (((struct layout *)(self))->l)

static PyObject *layout_name(PyObject *self, void *closure)
{
    return field_text(prcb_layout_name(L(self)));
}

static PyObject *layout_arch(PyObject *self, void *closure)
{
    return field_text(prcb_arch_name(prcb_layout_arch(L(self))));
}

static PyObject *layout_note(PyObject *self, void *closure)
{
    return field_text(prcb_layout_note(L(self)));
}

static PyObject *layout_source(PyObject *self, void *closure)
{
    return field_text(prcb_layout_source(L(self)));
}

static PyObject *layout_partial(PyObject *self, void *closure)
{
    return PyBool_FromLong(prcb_layout_is_partial(L(self)));
}

static PyObject *layout_version(PyObject *self, void *closure)
{
    struct prcb_layout_version version = {.size = sizeof(version)};

    prcb_layout_version(L(self), &version);
    return record_new(version_type, version_fields, &version, 0);
}

static Py_ssize_t layout_length(PyObject *self)
{
    return prcb_layout_size(L(self));
}

static PyObject *field_list(const struct prcb_layout_field *fields, size_t count)
{
    PyObject *list = PyList_New(0);

    for (size_t i = 0; list && i < count; i++) {
        if (!list_take(list, record_new(field_type, field_fields, &fields[i], 0)))
            Py_CLEAR(list);
    }
    return list;
}

static PyObject *layout_members(PyObject *self, void *closure)
{
    size_t count;
    const struct prcb_layout_field *fields = prcb_layout_members(L(self), &count);

    return field_list(fields, count);
}

static PyObject *layout_leaves(PyObject *self, void *closure)
{
    size_t count;
    const struct prcb_layout_field *fields = prcb_layout_leaves(L(self), &count);

    return field_list(fields, count);
}

static PyObject *layout_lookup(PyObject *self, PyObject *args)
{
    struct prcb_layout_field f;
    struct prcb_error err;
    const char *path;

    if (!PyArg_ParseTuple(args, "s:lookup", &path))
        return NULL;
    if (prcb_layout_lookup(L(self), path, &f, &err))
        return raise_error(&err);
    return record_new(field_type, field_fields, &f, 0);
}

static PyObject *layout_number(const struct prcb_layout_field *f, uint64_t value)
{
    return f->kind == PRCB_LAYOUT_SIGNED ? PyLong_FromLongLong((int64_t)value)
                                         : PyLong_FromUnsignedLongLong(value);
}

static PyObject *layout_get(PyObject *self, PyObject *args)
{
    PyObject *result = NULL;
    struct prcb_layout_field f;
    struct prcb_error err;
    const char *path;
    uint64_t value;
    Py_buffer b;

    if (!PyArg_ParseTuple(args, "y*s:get", &b, &path))
        return NULL;
    if (prcb_layout_lookup(L(self), path, &f, &err) ||
        prcb_layout_get(L(self), b.buf, (size_t)b.len, path, &value, &err))
        raise_error(&err);
    else
        result = layout_number(&f, value);
    PyBuffer_Release(&b);
    return result;
}

static PyObject *layout_put(PyObject *self, PyObject *args)
{
    struct prcb_error err;
    PyObject *number;
    const char *path;
    uint64_t value;
    Py_buffer b;
    int result = -1;

    if (!PyArg_ParseTuple(args, "w*sO!:put", &b, &path, &PyLong_Type, &number))
        return NULL;
    value = (uint64_t)PyLong_AsLongLong(number);
    if (PyErr_Occurred()) { /* not negative, then */
        PyErr_Clear();
        value = PyLong_AsUnsignedLongLong(number);
    }
    if (!PyErr_Occurred()) {
        result = prcb_layout_put(L(self), b.buf, (size_t)b.len, path, value, &err);
        if (result)
            raise_error(&err);
    }
    PyBuffer_Release(&b);
    return result ? NULL : Py_NewRef(Py_None);
}

static PyObject *layout_decode(PyObject *self, PyObject *args)
{
    size_t count;
    const struct prcb_layout_field *leaves = prcb_layout_leaves(L(self), &count);
    uint64_t *values = calloc(count + 1, sizeof(*values));
    PyObject *dict = NULL;
    struct prcb_error err;
    Py_buffer b;

    if (!values)
        return PyErr_NoMemory();
    if (!PyArg_ParseTuple(args, "y*:decode", &b)) {
        free(values);
        return NULL;
    }
    if (prcb_layout_decode_all(L(self), b.buf, (size_t)b.len, values, count, &err))
        raise_error(&err);
    else
        dict = PyDict_New();
    for (size_t i = 0; dict && i < count; i++) {
        PyObject *value;

        if (leaves[i].kind == PRCB_LAYOUT_OPAQUE)
            continue; /* bytes whose members are not known have no value */
        value = layout_number(&leaves[i], values[i]);
        if (!value || PyDict_SetItemString(dict, leaves[i].name, value))
            Py_CLEAR(dict);
        Py_XDECREF(value);
    }
    PyBuffer_Release(&b);
    free(values);
    return dict;
}

static PyObject *layout_text(PyObject *self, int (*print)(const struct prcb_layout *, FILE *))
{
    PyObject *text = NULL;
    size_t length = 0;
    char *bytes = NULL;
    FILE *out = open_memstream(&bytes, &length);
    int result;

    if (!out)
        return PyErr_NoMemory();
    result = print(L(self), out);
    if (fclose(out) || result)
        PyErr_NoMemory();
    else
        text = field_text(bytes);
    free(bytes);
    return text;
}

static PyObject *layout_definition(PyObject *self, PyObject *args)
{
    return layout_text(self, prcb_layout_print);
}

static PyObject *layout_header(PyObject *self, PyObject *args)
{
    return layout_text(self, prcb_layout_print_header);
}

static PyObject *module_layout_versions(PyObject *module, PyObject *args)
{
    PyObject *list = PyList_New(0);
    struct prcb_layout_version version = {.size = sizeof(version)};

    for (unsigned id = 0; list && !prcb_layout_version_at(id, &version); id++) {
        if (!list_take(list, record_new(version_type, version_fields, &version, 0)))
            Py_CLEAR(list);
    }
    return list;
}

static PyObject *module_layout_structures(PyObject *module, PyObject *args)
{
    PyObject *list = PyList_New(0);
    const char *name;

    for (unsigned i = 0; list && (name = prcb_layout_structure_at(i)); i++) {
        if (!list_take(list, field_text(name)))
            Py_CLEAR(list);
    }
    return list;
}

static PyMethodDef layout_methods[] = {
    METHOD("lookup", layout_lookup, METH_VARARGS, "lookup(path): a field by its dotted path"),
    METHOD("get", layout_get, METH_VARARGS, "get(bytes, path): the value of a field"),
    METHOD("put", layout_put, METH_VARARGS, "put(buffer, path, value): writes a field"),
    METHOD("decode", layout_decode, METH_VARARGS, "decode(bytes): {path: value} of all leaves"),
    METHOD("definition", layout_definition, METH_NOARGS, "The C definition, with offsets."),
    METHOD("header", layout_header, METH_NOARGS, "A C header that compiles on any host."),
    {NULL, NULL, 0, NULL},
};
static PyGetSetDef layout_getset[] = {
    {"name", layout_name, NULL, NULL, NULL},
    {"arch", layout_arch, NULL, "'x64' or 'x86'", NULL},
    {"version", layout_version, NULL, NULL, NULL},
    {"note", layout_note, NULL, "what was assumed to arrive at this layout", NULL},
    {"source", layout_source, NULL, "where the facts come from", NULL},
    {"partial", layout_partial, NULL, "only some members are listed", NULL},
    {"members", layout_members, NULL, "the members in order of offset", NULL},
    {"leaves", layout_leaves, NULL, "all that holds a value, down through nesting", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
static PyType_Slot layout_slots[] = {
    {Py_tp_doc, "One structure of NT in one version; len() is its size in bytes."},
    {Py_tp_new, layout_new},
    {Py_tp_dealloc, layout_dealloc},
    {Py_tp_methods, layout_methods},
    {Py_tp_getset, layout_getset},
    {Py_sq_length, layout_length},
    {0, NULL},
};
static PyType_Spec layout_spec = {.name = "prcb.Layout",
                                  .basicsize = sizeof(struct layout),
                                  .flags = Py_TPFLAGS_DEFAULT,
                                  .slots = layout_slots};

/* ---- dumps ---------------------------------------------------------------- */

struct dump {
    PyObject_HEAD struct prcb_dump *d; /* NULL: closed */
};

static PyTypeObject *dump_type, *info_type, *processor_type, *value_type, *module_type,
    *context_type, *dump_thread_type, *dpc_type, *member_type, *structure_type;

/* clang-format off */
/* A prcb_dump_found, of which 0 is None. */
static PyObject *found_text(unsigned found)
{
    return field_text(prcb_dump_found_name(found));
}

static PyObject *u64_or_none(uint64_t value)
{
    if (!value)
        Py_RETURN_NONE;
    return PyLong_FromUnsignedLongLong(value);
}

#define MAKE(function, type, expression)                                                           \
    static PyObject *function(const void *base)                                                    \
    {                                                                                              \
        const type *r = base;                                                                      \
        return expression;                                                                         \
    }

MAKE(value_number, struct prcb_dump_value,
     r->found_by ? PyLong_FromUnsignedLongLong(r->value) : Py_NewRef(Py_None))
MAKE(value_found, struct prcb_dump_value, found_text(r->found_by))

static const struct field value_fields[] = {
    {"value", FIELD_OWN, 0, 0, 0, value_number},
    {"found_by", FIELD_OWN, 0, 0, 0, value_found},
    {"absent", FIELD_TEXT, offsetof(struct prcb_dump_value, absent), 0, 0, NULL},
    {NULL, 0, 0, 0, 0, NULL},
};

MAKE(info_parameters, struct prcb_dump_info,
     Py_BuildValue("(KKKK)", (unsigned long long)r->bugcheck_parameters[0],
                   (unsigned long long)r->bugcheck_parameters[1],
                   (unsigned long long)r->bugcheck_parameters[2],
                   (unsigned long long)r->bugcheck_parameters[3]))
MAKE(info_words, struct prcb_dump_info,
     Py_BuildValue("(zzzz)", r->bugcheck_words[0], r->bugcheck_words[1], r->bugcheck_words[2],
                   r->bugcheck_words[3]))
MAKE(info_uptime, struct prcb_dump_info, u64_or_none(r->uptime_100ns))
MAKE(info_crash_time, struct prcb_dump_info, u64_or_none(r->crash_time))
MAKE(info_qpc, struct prcb_dump_info, u64_or_none(r->qpc_frequency))
MAKE(info_exception, struct prcb_dump_info, u64_or_none(r->exception_code))
MAKE(info_exception_address, struct prcb_dump_info,
     r->exception_code ? PyLong_FromUnsignedLongLong(r->exception_address) : Py_NewRef(Py_None))
MAKE(info_layout_found, struct prcb_dump_info, found_text(r->layout_found))

#define I(member) offsetof(struct prcb_dump_info, member)
static const struct field info_fields[] = {
    {"container", FIELD_TEXT, I(container), 0, 0, NULL},
    {"container_words", FIELD_TEXT, I(container_words), 0, 0, NULL},
    {"machine", FIELD_TEXT, I(machine), 0, 0, NULL},
    {"major", FIELD_U32, I(major), 0, 0, NULL},
    {"build", FIELD_U32, I(build), 0, 0, NULL},
    {"release", FIELD_TEXT, I(release), 0, 0, NULL},
    {"layout", FIELD_TEXT, I(layout), 0, 0, NULL},
    {"layout_found", FIELD_OWN, 0, 0, 0, info_layout_found},
    {"bugcheck_code", FIELD_U32, I(bugcheck_code), 0, 0, NULL},
    {"bugcheck_name", FIELD_TEXT, I(bugcheck_name), 0, 0, NULL},
    {"bugcheck_parameters", FIELD_OWN, 0, 0, 0, info_parameters},
    {"bugcheck_words", FIELD_OWN, 0, 0, 0, info_words},
    {"exception_code", FIELD_OWN, 0, 0, 0, info_exception},
    {"exception_address", FIELD_OWN, 0, 0, 0, info_exception_address},
    {"uptime_100ns", FIELD_OWN, 0, 0, 0, info_uptime},
    {"crash_time", FIELD_OWN, 0, 0, 0, info_crash_time},
    {"header_processors", FIELD_U32, I(header_processors), 0, 0, NULL},
    {"time_increment", FIELD_U32, I(time_increment), 0, 0, NULL},
    {"qpc_frequency", FIELD_OWN, 0, 0, 0, info_qpc},
    {"kdbg_encoded", FIELD_BOOL, I(kdbg_encoded), 0, 0, NULL},
    {NULL, 0, 0, 0, 0, NULL},
};
#undef I

static PyObject *make_items(const void *base)
{
    const struct prcb_dump_processor *p = base;
    PyObject *items = PyDict_New();

    for (unsigned i = 0; items && i < PRCB_DUMP_ITEM_COUNT; i++) {
        PyObject *value = record_new(value_type, value_fields, &p->items[i], 0);

        if (!value || PyDict_SetItemString(items, prcb_dump_item_name(i), value))
            Py_CLEAR(items);
        Py_XDECREF(value);
    }
    return items;
}

MAKE(processor_kprcb, struct prcb_dump_processor,
     r->has_kprcb ? PyLong_FromUnsignedLongLong(r->kprcb) : Py_NewRef(Py_None))

#define P(member) offsetof(struct prcb_dump_processor, member)
static const struct field processor_fields[] = {
    {"number", FIELD_U32, P(number), 0, 0, NULL},
    {"crashing", FIELD_BOOL, P(crashing), 0, 0, NULL},
    {"held", FIELD_BOOL, P(held), 0, 0, NULL},
    {"kprcb", FIELD_OWN, 0, 0, 0, processor_kprcb},
    {"vendor", FIELD_CHARS, P(vendor), 0, 0, NULL},
    {"items", FIELD_OWN, 0, 0, 0, make_items},
    {NULL, 0, 0, 0, 0, NULL},
};
#undef P

MAKE(module_found, struct prcb_dump_module, found_text(r->found_by))
MAKE(module_timestamp, struct prcb_dump_module, u64_or_none(r->timestamp))
MAKE(module_checksum, struct prcb_dump_module, u64_or_none(r->checksum))

#define M(member) offsetof(struct prcb_dump_module, member)
static const struct field module_fields[] = {
    {"name", FIELD_TEXT, M(name), 0, 0, NULL},
    {"base", FIELD_U64, M(base), 0, 0, NULL},
    {"length", FIELD_U64, M(length), 0, 0, NULL},
    {"timestamp", FIELD_OWN, 0, 0, 0, module_timestamp},
    {"checksum", FIELD_OWN, 0, 0, 0, module_checksum},
    {"unloaded", FIELD_BOOL, M(is_unloaded), 0, 0, NULL},
    {"found_by", FIELD_OWN, 0, 0, 0, module_found},
    {NULL, 0, 0, 0, 0, NULL},
};
#undef M

MAKE(thread_address, struct prcb_dump_thread, u64_or_none(r->address))
MAKE(thread_process, struct prcb_dump_thread, u64_or_none(r->process))
MAKE(thread_id, struct prcb_dump_thread,
     r->ids_found_by ? PyLong_FromUnsignedLong(r->id) : Py_NewRef(Py_None))
MAKE(thread_process_id, struct prcb_dump_thread,
     r->ids_found_by ? PyLong_FromUnsignedLong(r->process_id) : Py_NewRef(Py_None))

static const struct field dump_thread_fields[] = {
    {"address", FIELD_OWN, 0, 0, 0, thread_address},
    {"process", FIELD_OWN, 0, 0, 0, thread_process},
    {"process_name", FIELD_TEXT, offsetof(struct prcb_dump_thread, process_name), 0, 0, NULL},
    {"id", FIELD_OWN, 0, 0, 0, thread_id},
    {"process_id", FIELD_OWN, 0, 0, 0, thread_process_id},
    {NULL, 0, 0, 0, 0, NULL},
};

MAKE(dpc_routine, struct prcb_dump_dpc,
     r->is_held ? PyLong_FromUnsignedLongLong(r->routine) : Py_NewRef(Py_None))

static const struct field dpc_fields[] = {
    {"address", FIELD_U64, offsetof(struct prcb_dump_dpc, address), 0, 0, NULL},
    {"routine", FIELD_OWN, 0, 0, 0, dpc_routine},
    {"threaded", FIELD_BOOL, offsetof(struct prcb_dump_dpc, is_threaded), 0, 0, NULL},
    {"active", FIELD_BOOL, offsetof(struct prcb_dump_dpc, is_active), 0, 0, NULL},
    {NULL, 0, 0, 0, 0, NULL},
};

MAKE(member_number, struct prcb_dump_member,
     !r->is_held || r->is_opaque ? Py_NewRef(Py_None)
     : r->is_signed ? PyLong_FromLongLong((int64_t)r->value)
                    : PyLong_FromUnsignedLongLong(r->value))
MAKE(member_bits, struct prcb_dump_member,
     r->bit_width ? Py_BuildValue("(II)", (unsigned)r->bit_first, (unsigned)r->bit_width)
                  : Py_NewRef(Py_None))

#define M(member) offsetof(struct prcb_dump_member, member)
static const struct field member_fields[] = {
    {"path", FIELD_TEXT, M(path), 0, 0, NULL},
    {"type", FIELD_TEXT, M(type), 0, 0, NULL},
    {"value", FIELD_OWN, 0, 0, 0, member_number},
    {"value_name", FIELD_TEXT, M(value_name), 0, 0, NULL},
    {"offset", FIELD_U32, M(offset), 0, 0, NULL},
    {"size", FIELD_U32, M(size), 0, 0, NULL},
    {"bits", FIELD_OWN, 0, 0, 0, member_bits},
    {"address", FIELD_U64, M(address), 0, 0, NULL},
    {"held", FIELD_BOOL, M(is_held), 0, 0, NULL},
    {NULL, 0, 0, 0, 0, NULL},
};
#undef M

/* What a structure is read by, and its members. */
struct structure {
    struct prcb_dump_structure head;
    PyObject *members;
};

MAKE(structure_address, struct structure,
     r->head.has_address ? PyLong_FromUnsignedLongLong(r->head.address) : Py_NewRef(Py_None))
MAKE(structure_length, struct structure, u64_or_none(r->head.length))
MAKE(structure_found, struct structure, found_text(r->head.found_by))
MAKE(structure_members, struct structure, Py_NewRef(r->members))

static const struct field structure_fields[] = {
    {"name", FIELD_TEXT, offsetof(struct structure, head.name), 0, 0, NULL},
    {"version", FIELD_CHARS, offsetof(struct structure, head.version), 0, 0, NULL},
    {"address", FIELD_OWN, 0, 0, 0, structure_address},
    {"length", FIELD_OWN, 0, 0, 0, structure_length},
    {"found_by", FIELD_OWN, 0, 0, 0, structure_found},
    {"members", FIELD_OWN, 0, 0, 0, structure_members},
    {NULL, 0, 0, 0, 0, NULL},
};

/* A processor's context, and the registers of it. */
struct context {
    struct prcb_dump_context head;
    PyObject *registers;
    const char *irql_name;
};

MAKE(context_pc, struct context,
     r->head.found_by ? PyLong_FromUnsignedLongLong(r->head.program_counter) : Py_NewRef(Py_None))
MAKE(context_sp, struct context,
     r->head.found_by ? PyLong_FromUnsignedLongLong(r->head.stack_pointer) : Py_NewRef(Py_None))
MAKE(context_registers, struct context, Py_NewRef(r->registers))
MAKE(context_irql, struct context,
     r->head.irql_found_by ? PyLong_FromLong(r->head.irql) : Py_NewRef(Py_None))

static const struct field context_fields[] = {
    {"program_counter", FIELD_OWN, 0, 0, 0, context_pc},
    {"stack_pointer", FIELD_OWN, 0, 0, 0, context_sp},
    {"registers", FIELD_OWN, 0, 0, 0, context_registers},
    {"irql", FIELD_OWN, 0, 0, 0, context_irql},
    {"irql_name", FIELD_TEXT, offsetof(struct context, irql_name), 0, 0, NULL},
    {"absent", FIELD_TEXT, offsetof(struct context, head.absent), 0, 0, NULL},
    {NULL, 0, 0, 0, 0, NULL},
};
/* clang-format on */

static struct prcb_dump *dump_use(PyObject *self)
{
    struct prcb_dump *d = ((struct dump *)self)->d;

    if (!d)
        PyErr_SetString(PyExc_ValueError, "the dump is closed");
    return d;
}

static PyObject *dump_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"path", "time_increment", "qpc_frequency", NULL};
    struct prcb_dump_options options = {.size = sizeof(options)};
    unsigned long long qpc = 0;
    unsigned int increment = 0;
    struct prcb_error err;
    struct dump *d;
    PyObject *path;
    int result;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O&|$IK:dump", names, PyUnicode_FSConverter,
                                     &path, &increment, &qpc))
        return NULL;
    options.time_increment = increment;
    options.qpc_frequency = qpc;
    d = new_object(dump_type, sizeof(*d));
    if (!d) {
        Py_DECREF(path);
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS;
    result = prcb_dump_open(PyBytes_AsString(path), &options, &d->d, &err);
    Py_END_ALLOW_THREADS;
    Py_DECREF(path);
    if (result) {
        d->d = NULL;
        Py_DECREF(d);
        return raise_error(&err);
    }
    return (PyObject *)d;
}

static void dump_dealloc(PyObject *self)
{
    prcb_dump_close(((struct dump *)self)->d);
    free_object(self);
}

static PyObject *dump_close(PyObject *self, PyObject *args)
{
    struct dump *d = (struct dump *)self;
    struct prcb_dump *open = d->d;

    d->d = NULL;
    prcb_dump_close(open);
    Py_RETURN_NONE;
}

static PyObject *dump_info(PyObject *self, void *closure)
{
    struct prcb_dump *d = dump_use(self);

    return d ? record_new(info_type, info_fields, prcb_dump_info(d), 0) : NULL;
}

static PyObject *dump_processors(PyObject *self, void *closure)
{
    struct prcb_dump *d = dump_use(self);
    PyObject *list = d ? PyList_New(0) : NULL;

    for (size_t i = 0; list && i < prcb_dump_processor_count(d); i++) {
        if (!list_take(list,
                       record_new(processor_type, processor_fields, prcb_dump_processor(d, i), 0)))
            Py_CLEAR(list);
    }
    return list;
}

static PyObject *dump_notes(PyObject *self, void *closure)
{
    struct prcb_dump *d = dump_use(self);
    PyObject *list = d ? PyList_New(0) : NULL;
    const char *note;

    for (size_t i = 0; list && (note = prcb_dump_note(d, i)); i++) {
        if (!list_take(list, field_text(note)))
            Py_CLEAR(list);
    }
    return list;
}

static PyObject *dump_modules(PyObject *self, void *closure)
{
    struct prcb_dump *d = dump_use(self);
    PyObject *list = d ? PyList_New(0) : NULL;

    for (size_t i = 0; list && i < prcb_dump_module_count(d); i++) {
        struct prcb_dump_module m = {.size = sizeof(m)};

        if (prcb_dump_module(d, i, &m))
            break;
        if (!list_take(list, record_new(module_type, module_fields, &m, 0)))
            Py_CLEAR(list);
    }
    return list;
}

static PyObject *dump_address_text(PyObject *self, PyObject *arg)
{
    struct prcb_dump *d = dump_use(self);
    unsigned long long address = d ? PyLong_AsUnsignedLongLong(arg) : 0;
    char text[160];

    if (PyErr_Occurred())
        return NULL;
    if (prcb_dump_address_text(d, address, text, sizeof(text)))
        Py_RETURN_NONE;
    return field_text(text);
}

/* The index that an argument names; false: an exception is set. */
static bool processor_index(struct prcb_dump *d, PyObject *arg, size_t *ret)
{
    Py_ssize_t index = PyLong_AsSsize_t(arg);

    if (index == -1 && PyErr_Occurred())
        return false;
    if (index < 0 || (size_t)index >= prcb_dump_processor_count(d)) {
        PyErr_Format(PyExc_IndexError, "the dump has no processor %zd", index);
        return false;
    }
    *ret = (size_t)index;
    return true;
}

static PyObject *dump_context(PyObject *self, PyObject *arg)
{
    struct prcb_dump *d = dump_use(self);
    struct context c = {.head.size = sizeof(c.head)};
    PyObject *record;
    size_t index;
    int result;

    if (!d || !processor_index(d, arg, &index))
        return NULL;
    result = prcb_dump_context(d, index, &c.head);
    if (result)
        return raise_code(result, "the processor's registers cannot be read");
    c.irql_name = c.head.irql_found_by ? prcb_dump_irql_name(d, c.head.irql) : NULL;
    c.registers = PyDict_New();
    for (size_t i = 0; c.registers && i < c.head.register_count; i++) {
        const char *name;
        PyObject *number;
        uint64_t value;

        if (prcb_dump_register(d, index, i, &name, &value))
            break;
        number = PyLong_FromUnsignedLongLong(value);
        if (!number || PyDict_SetItemString(c.registers, name, number))
            Py_CLEAR(c.registers);
        Py_XDECREF(number);
    }
    record = c.registers ? record_new(context_type, context_fields, &c, 0) : NULL;
    Py_XDECREF(c.registers);
    return record;
}

static PyObject *dump_thread(PyObject *self, PyObject *arg)
{
    struct prcb_dump *d = dump_use(self);
    struct prcb_dump_thread t = {.size = sizeof(t)};
    size_t index;
    int result;

    if (!d || !processor_index(d, arg, &index))
        return NULL;
    result = prcb_dump_thread(d, index, &t);
    if (result)
        return raise_code(result, "the processor's thread cannot be read");
    return record_new(dump_thread_type, dump_thread_fields, &t, 0);
}

/* Callbacks append to a list, and stop when an exception is set. */
static int take_dpc(const struct prcb_dump_dpc *dpc, void *list)
{
    return !list_take(list, record_new(dpc_type, dpc_fields, dpc, 0));
}

static PyObject *dump_dpcs(PyObject *self, PyObject *arg)
{
    struct prcb_dump *d = dump_use(self);
    PyObject *list;
    size_t index;
    int result;

    if (!d || !processor_index(d, arg, &index))
        return NULL;
    list = PyList_New(0);
    result = list ? prcb_dump_dpcs(d, index, take_dpc, list) : 1;
    if (result) {
        Py_CLEAR(list);
        if (result < 0)
            raise_code(result, "the dump does not say where the DPC queues are");
    }
    return list;
}

static int take_address(uint64_t address, uint64_t value, void *list)
{
    return !list_take(
        list, Py_BuildValue("(KK)", (unsigned long long)address, (unsigned long long)value));
}

static PyObject *dump_stack_scan(PyObject *self, PyObject *args)
{
    struct prcb_dump *d = dump_use(self);
    PyObject *list = d ? PyList_New(0) : NULL;
    struct prcb_error err;
    int result;

    if (!list)
        return NULL;
    result = prcb_dump_stack_scan(d, take_address, list, &err);
    if (result) {
        Py_CLEAR(list);
        if (result < 0)
            raise_error(&err);
    }
    return list;
}

static int take_member(const struct prcb_dump_member *member, void *list)
{
    return !list_take(list, record_new(member_type, member_fields, member, 0));
}

static PyObject *dump_structure(PyObject *self, PyObject *args)
{
    struct prcb_dump *d = dump_use(self);
    struct structure s = {.head.size = sizeof(s.head)};
    PyObject *number, *record = NULL;
    struct prcb_error err;
    const char *name;
    size_t index;
    int result;

    if (!d || !PyArg_ParseTuple(args, "Os:structure", &number, &name) ||
        !processor_index(d, number, &index))
        return NULL;
    s.members = PyList_New(0);
    result =
        s.members ? prcb_dump_structure(d, index, name, take_member, s.members, &s.head, &err) : 1;
    if (!result)
        record = record_new(structure_type, structure_fields, &s, 0);
    else if (result < 0)
        raise_error(&err);
    Py_XDECREF(s.members);
    return record;
}

static PyObject *dump_read(PyObject *self, PyObject *args)
{
    struct prcb_dump *d = dump_use(self);
    unsigned long long address;
    PyObject *bytes = NULL;
    struct prcb_error err;
    Py_ssize_t length;
    char *buffer;

    if (!d || !PyArg_ParseTuple(args, "Kn:read", &address, &length))
        return NULL;
    if (length < 0) {
        PyErr_SetString(PyExc_ValueError, "a length is not negative");
        return NULL;
    }
    buffer = malloc((size_t)length + 1);
    if (!buffer)
        return PyErr_NoMemory();
    if (prcb_dump_read(d, address, buffer, (size_t)length, &err))
        raise_error(&err);
    else
        bytes = PyBytes_FromStringAndSize(buffer, length);
    free(buffer);
    return bytes;
}

static PyObject *module_dump_structures(PyObject *module, PyObject *args)
{
    PyObject *list = PyList_New(0);
    const char *name;

    for (unsigned i = 0; list && (name = prcb_dump_structure_at(i)); i++) {
        if (!list_take(list, field_text(name)))
            Py_CLEAR(list);
    }
    return list;
}

static PyMethodDef dump_methods[] = {
    METHOD("context", dump_context, METH_O, "context(index): a processor's registers"),
    METHOD("thread", dump_thread, METH_O, "thread(index): a processor's current thread"),
    METHOD("dpcs", dump_dpcs, METH_O, "dpcs(index): a processor's active and queued DPCs"),
    METHOD("structure", dump_structure, METH_VARARGS,
           "structure(index, name): a structure of a processor, member by member"),
    METHOD("stack_scan", dump_stack_scan, METH_NOARGS,
           "Values on the crashing thread's stack that lie in a module: (address, value)."),
    METHOD("address_text", dump_address_text, METH_O,
           "address_text(address): 'module+0x12', or None"),
    METHOD("read", dump_read, METH_VARARGS, "read(address, length): bytes of the crashed kernel"),
    METHOD("close", dump_close, METH_NOARGS, "Close the file."),
    METHOD("__enter__", return_self, METH_NOARGS, NULL),
    METHOD("__exit__", dump_close, METH_VARARGS, NULL),
    {NULL, NULL, 0, NULL},
};
static PyGetSetDef dump_getset[] = {
    {"info", dump_info, NULL, "the machine as a whole", NULL},
    {"processors", dump_processors, NULL, "in order of number", NULL},
    {"notes", dump_notes, NULL, "what a person should know", NULL},
    {"modules", dump_modules, NULL, "loaded ones first, then unloaded ones", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
static PyType_Slot dump_slots[] = {
    {Py_tp_doc, "What each processor of a crashed Windows was doing."},
    {Py_tp_new, dump_new},
    {Py_tp_dealloc, dump_dealloc},
    {Py_tp_methods, dump_methods},
    {Py_tp_getset, dump_getset},
    {0, NULL},
};
static PyType_Spec dump_spec = {.name = "prcb.Dump",
                                .basicsize = sizeof(struct dump),
                                .flags = Py_TPFLAGS_DEFAULT,
                                .slots = dump_slots};

/* ---- the module --------------------------------------------------------- */

static PyMethodDef module_methods[] = {
    METHOD("layout_versions", module_layout_versions, METH_NOARGS,
           "The versions of Windows of which structures are known."),
    METHOD("layout_structures", module_layout_structures, METH_NOARGS,
           "Names of all structures that layouts are known of."),
    METHOD("dump_structures", module_dump_structures, METH_NOARGS,
           "Names of the structures that Dump.structure reads."),
    {NULL, NULL, 0, NULL},
};
static struct PyModuleDef module_def = {PyModuleDef_HEAD_INIT, .m_name = "prcb._windows",
                                        .m_doc = "Structures and crash dumps of Windows.",
                                        .m_size = -1, .m_methods = module_methods};

static const struct {
    PyTypeObject **type;
    const char *name, *doc;
    const struct field *fields;
} records[] = {
    {&field_type, "prcb.Field", "A named stretch of a structure.", field_fields},
    {&version_type, "prcb.LayoutVersion", "A version of Windows.", version_fields},
    {&info_type, "prcb.DumpInfo", "The machine as a whole.", info_fields},
    {&value_type, "prcb.DumpValue", "A value, how it was found, why it is absent.", value_fields},
    {&processor_type, "prcb.DumpProcessor", "A processor of a dump.", processor_fields},
    {&module_type, "prcb.DumpModule", "A module of the crashed kernel.", module_fields},
    {&context_type, "prcb.DumpContext", "A processor's registers.", context_fields},
    {&dump_thread_type, "prcb.DumpThread", "A processor's current thread.", dump_thread_fields},
    {&dpc_type, "prcb.DumpDpc", "A DPC of a processor.", dpc_fields},
    {&member_type, "prcb.DumpMember", "A member of a structure.", member_fields},
    {&structure_type, "prcb.DumpStructure", "A structure of a processor.", structure_fields},
};

PyMODINIT_FUNC PyInit__windows(void)
{
    PyObject *module = PyModule_Create(&module_def);

    if (module && (!(layout_type = add_type(module, &layout_spec)) ||
                   !(dump_type = add_type(module, &dump_spec))))
        Py_CLEAR(module);
    for (size_t i = 0; module && i < sizeof(records) / sizeof(*records); i++) {
        *records[i].type = record_type(module, records[i].name, records[i].doc, records[i].fields);
        if (!*records[i].type)
            Py_CLEAR(module);
    }
    return module;
}
