/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The kernel's types as a file of anything. What is picked out must be readable, and its numbers be
 * those of types that the file has. Files that the parser leaves to libbpf go no further here: they
 * are the kernel's, and libbpf is not what is tried. The object of programs is the target's own:
 * the types it reads, and two programs.
 */
#include <assert.h>
#include <errno.h>
#include <linux/btf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <bpf/btf.h>
#include <bpf/libbpf.h>

#include "kernel_types.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* libbpf's, for whole files. */
struct btf *__real_btf__new(const void *data, __u32 size);
struct btf *__wrap_btf__new(const void *data, __u32 size);

static const uint8_t *whole;
static size_t whole_size;

struct btf *__wrap_btf__new(const void *data, __u32 size)
{
    if (whole && size == whole_size && !memcmp(data, whole, size)) {
        errno = EINVAL;
        return NULL;
    }
    return __real_btf__new(data, size);
}

struct btf *__wrap_bpf_object__btf(const struct bpf_object *object);
struct bpf_program *__wrap_bpf_object__next_program(const struct bpf_object *object,
                                                    struct bpf_program *before);
const char *__wrap_bpf_program__section_name(const struct bpf_program *program);

struct bpf_object {
    struct btf *btf;
};
struct bpf_program {
    const char *section;
};
static struct bpf_program programs[] = {{"prcb_tp/sched_switch"}, {"prcb_iter/task"}};

struct btf *__wrap_bpf_object__btf(const struct bpf_object *object)
{
    return object->btf;
}

struct bpf_program *__wrap_bpf_object__next_program(const struct bpf_object *object,
                                                    struct bpf_program *before)
{
    return !before ? programs : before == programs ? programs + 1 : NULL;
}

const char *__wrap_bpf_program__section_name(const struct bpf_program *program)
{
    return program->section;
}

static struct btf *types_that_are_read(void)
{
    static const char *const names[] = {"task_struct", "sched_entity", "rq", "cfs_rq", "pid"};
    struct btf *btf = btf__new_empty();

    assert(btf);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        assert(btf__add_struct(btf, names[i], 8) > 0);
    return btf;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct bpf_object object;
    static char source[64];
    static int fd = -1;
    struct kernel_types t;
    struct prcb_error err = {0};
    uint32_t most = (uint32_t)(size / sizeof(struct btf_type)) + 1;

    if (!object.btf) {
        libbpf_set_print(NULL);
        object.btf = types_that_are_read();
        fd = memfd_create("kernel", MFD_CLOEXEC);
        snprintf(source, sizeof(source), "/proc/self/fd/%d", fd);
        kernel_types_source = source;
        assert(fd >= 0);
    }
    assert(!ftruncate(fd, 0) && pwrite(fd, data, size, 0) == (ssize_t)size);
    assert(!kernel_types_init(&t, &err));
    whole = data;
    whole_size = size;
    if (!kernel_types_find(&t, &object, kernel_report_names, &err)) {
        kernel_reports(t.btf);
        kernel_check(t.btf, KERNEL_FOR_CLIENTS, &err);
        assert(kernel_types_target(&t, "sched_switch", false) <= most);
    } else {
        assert(*err.text);
    }
    whole = NULL;
    kernel_types_free(&t);
    return 0;
}
