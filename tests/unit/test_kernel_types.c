/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The kernel's types that are picked out for an object: of a kernel that libbpf has made up, and of
 * files that are broken anywhere.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <cmocka.h>

#include "accounts.h"
#include "accounts.skel.h"
#include "kernel_types.h"

static struct accounts_bpf *object;
static char source[64];
static int source_fd = -1;

static void put_source(const void *bytes, size_t size)
{
    assert_int_equal(ftruncate(source_fd, 0), 0);
    assert_int_equal(pwrite(source_fd, bytes, size, 0), size);
}

static int begin(void **state)
{
    libbpf_set_print(NULL);
    object = accounts_bpf__open();
    source_fd = memfd_create("kernel", MFD_CLOEXEC);
    snprintf(source, sizeof(source), "/proc/self/fd/%d", source_fd);
    kernel_types_source = source;
    return object && source_fd >= 0 ? 0 : -1;
}

static int end(void **state)
{
    accounts_bpf__destroy(object);
    close(source_fd);
    return 0;
}

/* ---- a kernel that is made up ---- */

struct made {
    int unwanted, tracepoint, other_tracepoint, iterator, task, cast;
};

static int typedef_of_arguments(struct btf *btf, const char *name, int count, int type)
{
    int proto = btf__add_func_proto(btf, 0);

    for (int i = 0; i <= count; i++)
        btf__add_func_param(btf, i ? "argument" : "data", type);
    return btf__add_typedef(btf, name, btf__add_ptr(btf, proto));
}

/* The names that programs read among others; pointers to what they do not. */
static struct btf *make_kernel(struct made *ret)
{
    struct btf *btf = btf__new_empty();
    int word, clock, unnamed, entity, far, array, variable, other;

    assert_non_null(btf);
    word = btf__add_int(btf, "unsigned int", 4, 0);
    clock = btf__add_int(btf, "unsigned long", 8, 0);
    ret->unwanted = btf__add_struct(btf, "no_program_reads_this", 4);
    btf__add_field(btf, "member", word, 0, 0);
    far = btf__add_struct(btf, "far", 4);
    btf__add_field(btf, "away", word, 0, 0);
    btf__add_func(btf, "task", BTF_FUNC_GLOBAL, btf__add_func_proto(btf, 0));
    /* A function of the tracepoint's name is none, nor is a typedef of the iterator's. */
    btf__add_func(btf, "btf_trace_sched_switch", BTF_FUNC_GLOBAL, btf__add_func_proto(btf, 0));
    btf__add_typedef(btf, "bpf_iter_task", word);
    far = btf__add_ptr(btf, far);
    entity = btf__add_struct(btf, "sched_entity", 8);
    btf__add_field(btf, "cfs_rq", far, 0, 0);
    entity = btf__add_const(btf, entity);
    unnamed = btf__add_union(btf, NULL, 4);
    btf__add_field(btf, "deep", word, 0, 0);
    array = btf__add_array(btf, word, word, 4);
    ret->task = btf__add_struct(btf, "task_struct", 48);
    btf__add_field(btf, "se", entity, 0, 0);
    btf__add_field(btf, NULL, unnamed, 64, 0);
    btf__add_field(btf, "four", array, 96, 0);
    btf__add_field(btf, "__state", word, 224, 0);
    btf__add_enum(btf, "bpf_map_type", 4);
    btf__add_enum_value(btf, "BPF_MAP_TYPE_TASK_STORAGE", 29);
    ret->tracepoint = typedef_of_arguments(btf, "btf_trace_sched_switch", 4, word);
    ret->other_tracepoint = typedef_of_arguments(btf, "btf_trace_task_newtask", 2, word);
    typedef_of_arguments(btf, "btf_trace_no_program", 2, word);
    ret->iterator =
        btf__add_func(btf, "bpf_iter_task", BTF_FUNC_GLOBAL, btf__add_func_proto(btf, 0));
    btf__add_typedef(btf, "bpf_rdonly_cast", word);
    ret->cast = btf__add_func(btf, "bpf_rdonly_cast", BTF_FUNC_GLOBAL, btf__add_func_proto(btf, 0));
    typedef_of_arguments(btf, "btf_trace_sched_switch", 9, word); /* the first of a name counts */
    variable = btf__add_struct(btf, "rq", 8);
    btf__add_field(btf, "clock", clock, 0, 0);
    variable = btf__add_var(btf, "runqueues", BTF_VAR_GLOBAL_ALLOCATED, variable);
    other = btf__add_var(btf, "others", BTF_VAR_STATIC, word);
    btf__add_datasec(btf, ".data..percpu", 4096);
    btf__add_datasec_var_info(btf, other, 64, 4);
    assert_int_equal(btf__add_datasec_var_info(btf, variable, 128, 8), 0);
    return btf;
}

static void picks_what_is_named(void **state)
{
    static const char *const names[] = {"btf_trace_sched_switch", "bpf_map_type", "runqueues",
                                        NULL};
    struct kernel_types t;
    struct prcb_error err;
    const struct btf_type *section;
    const void *bytes;
    struct btf *btf;
    struct made made;
    __u32 size;
    int id;

    btf = make_kernel(&made);
    bytes = btf__raw_data(btf, &size);
    put_source(bytes, size);
    assert_int_equal(kernel_types_init(&t, &err), 0);
    assert_int_equal(kernel_types_find(&t, object->obj, names, &err), 0);
    /* Found, with what they hold by value; not what they point at, nor the rest. */
    assert_true(kernel_has_member(t.btf, "task_struct", "__state"));
    assert_true(kernel_has_member(t.btf, "task_struct", "deep"));
    assert_false(kernel_has_member(t.btf, "task_struct", "comm"));
    assert_true(kernel_has_member(t.btf, "sched_entity", "cfs_rq"));
    assert_true(btf__find_by_name(t.btf, "no_program_reads_this") < 0);
    assert_true(btf__find_by_name(t.btf, "far") < 0);
    assert_true(kernel_has_constant(t.btf, "bpf_map_type", "BPF_MAP_TYPE_TASK_STORAGE"));
    assert_false(kernel_has_constant(t.btf, "bpf_map_type", "BPF_MAP_TYPE_ARENA"));
    assert_int_equal(kernel_tracepoint_arguments(t.btf, "sched_switch"), 4);
    assert_int_equal(kernel_tracepoint_arguments(t.btf, "contention_begin"), -1);
    id = btf__find_by_name_kind(t.btf, ".data..percpu", BTF_KIND_DATASEC);
    assert_true(id > 0);
    section = btf__type_by_id(t.btf, (__u32)id);
    assert_int_equal(btf_vlen(section), 1);
    assert_int_equal(btf_var_secinfos(section)->offset, 128);
    /* Numbers are the kernel's own. */
    assert_int_equal(kernel_types_target(&t, "sched_switch", false), made.tracepoint);
    assert_int_equal(kernel_types_target(&t, "task_newtask", false), made.other_tracepoint);
    assert_int_equal(kernel_types_target(&t, "task", true), made.iterator);
    assert_int_equal(kernel_types_target(&t, "task", false), 0);
    assert_int_equal(kernel_types_target(&t, "task_rename", false), 0);
    assert_int_equal(t.task, made.task);
    assert_int_equal(t.cast, made.cast);
    assert_int_equal(kernel_type_number("sched_switch", false), made.tracepoint);
    assert_int_equal(kernel_type_number("task", true), made.iterator);
    assert_int_equal(kernel_type_number("nothing", true), 0);
    assert_int_equal(kernel_check(t.btf, KERNEL_FOR_ACCOUNTS, &err), -EOPNOTSUPP);
    assert_non_null(strstr(err.text, "arrays")); /* of the enumeration that is there */
    kernel_types_free(&t);
    btf__free(btf);
}

/* ---- kernels that are too old ---- */

/* What the kernel calls itself; NULL: what it is called. */
static const char *release;

/* In the place of the C library's. */
int uname(struct utsname *ret)
{
    *ret = (struct utsname){0};
    snprintf(ret->release, sizeof(ret->release), "%s", release ? release : "6.1.0");
    return 0;
}

#define HAS_NO_STATE 1 /* of task_struct */
#define HAS_NO_ENUMS 2 /* which then tell nothing */

/* With all of them but one. */
/* With all constants that a row asks for. */
static void add_enum(struct btf *btf, const char *name, const char *missing)
{
    int number = 0;

    btf__add_enum(btf, name, 4);
    for (const struct kernel_feature *each = kernel_features; each->type; each++) {
        if (!strcmp(each->type, name) && (!missing || strcmp(each->name, missing) != 0))
            assert_int_equal(btf__add_enum_value(btf, each->name, number++), 0);
    }
}

static struct btf *make_old_kernel(const char *missing, unsigned lacks)
{
    struct btf *btf = btf__new_empty();
    int word;

    assert_non_null(btf);
    word = btf__add_int(btf, "unsigned int", 4, 0);
    btf__add_struct(btf, "task_struct", 8);
    btf__add_field(btf, lacks & HAS_NO_STATE ? "state" : "__state", word, 0, 0);
    if (lacks & HAS_NO_ENUMS)
        return btf;
    add_enum(btf, "bpf_map_type", missing);
    add_enum(btf, "bpf_prog_type", missing);
    add_enum(btf, "bpf_func_id", missing);
    return btf;
}

#define TOO_OLD(kernel, piece, came_with)                                                          \
    "Linux " kernel " is too old for the eBPF programs: it has no " piece                          \
    ", which came with " came_with
#define LACKS(kernel, piece) "Linux " kernel " has no " piece ", which the eBPF programs need"

/* Every piece that a release brought: on releases before it, and on those that ought to have it.
 * 5.9 is older than 5.11; 5.110 and 10.1 are not. */
static void too_old(void **state)
{
    static const struct {
        const char *missing;
        unsigned lacks;
        const char *release, *text;
    } rows[] = {
        {"BPF_MAP_TYPE_TASK_STORAGE", 0, "5.10.0-46-amd64",
         TOO_OLD("5.10.0-46-amd64", "task storage for eBPF programs", "5.11")},
        {"BPF_MAP_TYPE_TASK_STORAGE", 0, "5.9.1",
         TOO_OLD("5.9.1", "task storage for eBPF programs", "5.11")},
        {"BPF_MAP_TYPE_TASK_STORAGE", 0, "4.19.0-27-amd64",
         TOO_OLD("4.19.0-27-amd64", "task storage for eBPF programs", "5.11")},
        {"BPF_MAP_TYPE_TASK_STORAGE", 0, "5.11.0",
         LACKS("5.11.0", "task storage for eBPF programs")},
        {"BPF_MAP_TYPE_TASK_STORAGE", 0, "5.110.0",
         LACKS("5.110.0", "task storage for eBPF programs")},
        {"BPF_MAP_TYPE_TASK_STORAGE", 0, "10.1.0",
         LACKS("10.1.0", "task storage for eBPF programs")},
        {"BPF_FUNC_get_current_task_btf", 0, "5.10.262",
         TOO_OLD("5.10.262", "bpf_get_current_task_btf", "5.11")},
        {"BPF_PROG_TYPE_SYSCALL", 0, "5.13.19",
         TOO_OLD("5.13.19", "eBPF programs of type syscall", "5.14")},
        {NULL, HAS_NO_STATE, "5.13.19", TOO_OLD("5.13.19", "task_struct.__state", "5.14")},
        {NULL, HAS_NO_STATE | HAS_NO_ENUMS, "5.13.19",
         TOO_OLD("5.13.19", "task_struct.__state", "5.14")},
        {NULL, HAS_NO_STATE, "6.1.0", LACKS("6.1.0", "task_struct.__state")},
        /* Nobody knows a release that has no such member. */
        {NULL, 0, "5.10.0", LACKS("5.10.0", "task_struct.pid")},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct prcb_error err = {0};
        struct btf *btf = make_old_kernel(rows[i].missing, rows[i].lacks);

        release = rows[i].release;
        assert_int_equal(kernel_check(btf, KERNEL_FOR_ACCOUNTS, &err), -EOPNOTSUPP);
        assert_string_equal(err.text, rows[i].text);
        btf__free(btf);
    }
    release = NULL;
}

/* ---- broken ones ---- */

/* Whatever comes of it, nothing is read beside the file, and an error has words. */
static int find(const void *bytes, size_t size)
{
    struct prcb_error err = {0};
    struct kernel_types t;
    int result;

    put_source(bytes, size);
    assert_int_equal(kernel_types_init(&t, &err), 0);
    result = kernel_types_find(&t, object->obj, kernel_report_names, &err);
    if (result)
        assert_true(err.text[0]);
    else
        kernel_reports(t.btf);
    kernel_types_free(&t);
    return result;
}

static void broken_anywhere(void **state)
{
    struct made made;
    struct btf *btf = make_kernel(&made);
    const void *bytes;
    uint8_t *copy;
    __u32 size;

    bytes = btf__raw_data(btf, &size);
    copy = malloc(size);
    assert_non_null(copy);
    assert_int_equal(find(bytes, size), 0);
    for (size_t cut = 0; cut < size; cut += cut < 64 ? 1 : 37)
        assert_true(find(bytes, cut) < 0);
    for (size_t at = sizeof(struct btf_header); at < size; at += 3) {
        memcpy(copy, bytes, size);
        copy[at] ^= 0xff;
        find(copy, size);
    }
    free(copy);
    btf__free(btf);
}

static void not_there(void **state)
{
    struct prcb_error err = {0};
    struct kernel_types t;

    kernel_types_source = "/proc/self/fd/999999";
    assert_int_equal(kernel_types_init(&t, &err), 0);
    assert_int_equal(kernel_types_find(&t, object->obj, kernel_report_names, &err), -EOPNOTSUPP);
    assert_non_null(strstr(err.text, "CONFIG_DEBUG_INFO_BTF"));
    assert_int_equal(kernel_type_number("task", true), 0);
    kernel_types_free(&t);
    kernel_types_source = source;
}

/* This machine's own, as libbpf numbers them. */
static void this_kernel(void **state)
{
    int tracepoint = libbpf_find_vmlinux_btf_id("sched_switch", BPF_TRACE_RAW_TP);
    int iterator = libbpf_find_vmlinux_btf_id("task", BPF_TRACE_ITER);

    if (tracepoint < 0 || iterator < 0) {
        printf("    not run: this kernel has no BTF\n");
        skip();
    }
    kernel_types_source = "/sys/kernel/btf/vmlinux";
    assert_int_equal(kernel_type_number("sched_switch", false), tracepoint);
    assert_int_equal(kernel_type_number("task", true), iterator);
    kernel_types_source = source;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(picks_what_is_named), cmocka_unit_test(too_old),
        cmocka_unit_test(broken_anywhere),     cmocka_unit_test(not_there),
        cmocka_unit_test(this_kernel),
    };

    return cmocka_run_group_tests(tests, begin, end);
}
