/* SPDX-License-Identifier: BSD-2-Clause */
#include "bpf_run.h"

#include <errno.h>
#include <linux/bpf.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "error.h"

int bpf_no_print(enum libbpf_print_level level, const char *format, va_list args)
{
    return 0;
}

int bpf_explain_load(int code, struct prcb_error *err)
{
    if (code == -EPERM)
        return prcb_fail(err, -EPERM,
                         "eBPF programs may not be loaded: run as root, or with CAP_BPF and "
                         "CAP_PERFMON (prcb doctor tells more)");
    return prcb_fail(err, code == -EINVAL || code == -EACCES ? -EOPNOTSUPP : code,
                     "the kernel refused the eBPF programs (%s); prcb doctor says what it lacks",
                     strerror(-code));
}

int bpf_attach(struct bpf_program *program, struct bpf_link **link, struct prcb_error *err)
{
    if (*link)
        return 0;
    *link = bpf_program__attach(program);
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
    *ret = (int)options.retval;
    return 0;
}

static int make_link(int program, const union bpf_iter_link_info *info)
{
    struct bpf_link_create_opts options;

    /* Not LIBBPF_OPTS: that assigns a whole structure, whose padding at the end compilers
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

ssize_t bpf_read_iterator(int program, void *buffer, size_t size)
{
    int link = make_link(program, NULL), fd = link < 0 ? link : bpf_iter_create(link);
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
    return got;
}
