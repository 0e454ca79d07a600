/* SPDX-License-Identifier: BSD-2-Clause */
#include "bpf_run.h"

#include <errno.h>
#include <linux/bpf.h>
#include <linux/membarrier.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "error.h"

uint64_t bpf_misses_of(int program, uint32_t *ret_id)
{
    struct bpf_prog_info info = {0};
    __u32 size = sizeof(info);
    int result = bpf_obj_get_info_by_fd(program, &info, &size);

    if (ret_id)
        *ret_id = info.id;
    if (result || info.type == BPF_PROG_TYPE_PERF_EVENT ||
        size < offsetof(struct bpf_prog_info, recursion_misses) + sizeof(info.recursion_misses))
        return UINT64_MAX;
    return info.recursion_misses;
}

static bool is_for_events(const struct bpf_program *program)
{
    switch (bpf_program__type(program)) {
    case BPF_PROG_TYPE_RAW_TRACEPOINT:
    case BPF_PROG_TYPE_PERF_EVENT:
        return true;
    case BPF_PROG_TYPE_TRACING:
        return bpf_program__expected_attach_type(program) == BPF_TRACE_RAW_TP;
    default:
        return false;
    }
}

const struct bpf_program *bpf_event_program_at(const struct bpf_object *object, uint32_t i)
{
    struct bpf_program *program;

    bpf_object__for_each_program(program, object)
    {
        if (bpf_program__fd(program) >= 0 && is_for_events(program) && !i--)
            return program;
    }
    return NULL;
}

struct bpf_link *bpf_attach_program(struct bpf_program *program)
{
    /* libbpf forgets the section of a program whose type was changed. */
    return is_for_events(program) && bpf_program__type(program) == BPF_PROG_TYPE_TRACING
               ? bpf_program__attach_trace(program)
               : bpf_program__attach(program);
}

int bpf_attach(struct bpf_program *program, struct bpf_link **link, struct prcb_error *err)
{
    if (*link)
        return 0;
    *link = bpf_attach_program(program);
    if (!*link)
        return prcb_fail(err, -errno, "%s cannot be attached: %s", bpf_program__name(program),
                         strerror(errno));
    return 0;
}

int bpf_run_program(int program, void *context, unsigned bytes, int *ret)
{
    LIBBPF_OPTS(bpf_test_run_opts, options, .ctx_in = context, .ctx_size_in = bytes);
    int result = bpf_prog_test_run_opts(program, &options);

    if (result)
        return result;
    if (ret)
        *ret = (int)options.retval;
    return 0;
}

/* Programs run inside RCU read sections. Where some processors are left without a tick (nohz_full)
 * the kernel refuses this membarrier; after an update of a map of maps it waits for readers too. */
int bpf_wait_for_programs(void)
{
    struct bpf_map_create_opts options;
    int inner, outer = -1, result = 0;
    __u32 first = 0;

    if (!syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0))
        return 0;
    if (errno != EINVAL)
        return -errno;
    inner = bpf_map_create(BPF_MAP_TYPE_ARRAY, "prcb_wait", 4, 4, 1, NULL);
    memset(&options, 0, sizeof(options)); /* as in make_link */
    options.sz = sizeof(options);
    options.inner_map_fd = (__u32)inner;
    if (inner >= 0)
        outer = bpf_map_create(BPF_MAP_TYPE_ARRAY_OF_MAPS, "prcb_wait", 4, 4, 1, &options);
    if (outer < 0 || bpf_map_update_elem(outer, &first, &inner, BPF_ANY))
        result = -errno;
    if (outer >= 0)
        close(outer);
    if (inner >= 0)
        close(inner);
    return result;
}

static int make_link(int program, const union bpf_iter_link_info *info)
{
    struct bpf_link_create_opts options;

    /* LIBBPF_OPTS will not do: it assigns a whole structure, whose padding at the end compilers
     * need not clear, and libbpf refuses what is not zero there. */
    memset(&options, 0, sizeof(options));
    options.sz = sizeof(options);
    if (info) {
        options.iter_info = (union bpf_iter_link_info *)info;
        options.iter_info_len = sizeof(*info);
    }
    return bpf_link_create(program, 0, BPF_TRACE_ITER, &options);
}

/* Reads until the iterator has gone over everything. */
static int run_through(int link)
{
    int fd = bpf_iter_create(link), result = 0;
    char nothing[64];
    ssize_t got;

    if (fd < 0)
        return fd;
    while ((got = read(fd, nothing, sizeof(nothing))) > 0 ||
           (got < 0 && (errno == EAGAIN || errno == EINTR)))
        ;
    if (got < 0)
        result = -errno;
    close(fd);
    return result;
}

int bpf_run_iterator(bool *narrow, int program, pid_t tid, pid_t pid)
{
    union bpf_iter_link_info info = {.task = {.tid = (__u32)tid, .pid = (__u32)pid}};
    bool one = *narrow && (tid || pid);
    int link = make_link(program, one ? &info : NULL), result;

    if (one && (link == -EINVAL || link == -E2BIG)) {
        *narrow = false;
        link = make_link(program, NULL);
    }
    if (link < 0)
        return link;
    result = run_through(link);
    close(link);
    return result;
}

ssize_t bpf_read_iterator(int program, pid_t tid, void *buffer, size_t size)
{
    union bpf_iter_link_info info = {.task = {.tid = (__u32)tid}};
    int link = make_link(program, tid ? &info : NULL);
    int fd = link < 0 ? link : bpf_iter_create(link);
    size_t have = 0;
    ssize_t got = 1;

    while (fd >= 0 && have < size && got) {
        got = read(fd, (char *)buffer + have, size - have);
        if (got < 0 && errno != EAGAIN && errno != EINTR)
            break;
        have += got > 0 ? (size_t)got : 0;
    }
    got = fd < 0 ? fd : got < 0 ? -errno : (ssize_t)have;
    if (fd >= 0)
        close(fd);
    if (link >= 0)
        close(link);
    return tid && (got == -EINVAL || got == -E2BIG) ? -EOPNOTSUPP : got;
}

/* Lines look like "futex_wait_queue+0x60/0x90", "ext4_map_blocks+0x1a/0x6e0 [ext4]",
 * "0xffffffffc0a01234". */
size_t bpf_kernel_names(char *text, size_t length)
{
    size_t used = 0, next;

    for (size_t at = 0; at < length; at = next) {
        char *end = memchr(text + at, '\n', length - at);
        size_t line = end ? (size_t)(end - text) - at : length - at, name = 0;

        next = at + line + 1;
        while (name < line && text[at + name] != '+' && text[at + name] != ' ')
            name++;
        if (!end || !name || (text[at] >= '0' && text[at] <= '9'))
            continue; /* cut off, or no name */
        memmove(text + used, text + at, name);
        used += name;
        for (; name < line; name++) {
            if (text[at + name] == ' ') {
                memmove(text + used, text + at + name, line - name);
                used += line - name;
                break;
            }
        }
        text[used++] = '\n';
    }
    text[used++] = '\0';
    return used;
}
