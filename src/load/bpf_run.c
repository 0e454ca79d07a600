/* SPDX-License-Identifier: BSD-2-Clause */
#include "bpf_run.h"

#include <errno.h>
#include <linux/bpf.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/btf.h>

#include "error.h"
#include "kernel_btf.h"

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

int bpf_explain_accounts(int code, struct prcb_error *err)
{
    if (code == -ENOMEM)
        return prcb_fail(err, code, "no memory for the accounts: ask for fewer threads");
    return bpf_explain_load(code, err);
}

int bpf_find_facts(struct bpf_facts *ret, struct prcb_error *err)
{
    struct btf *btf = btf__load_vmlinux_btf();

    if (!btf)
        return prcb_fail(err, -EOPNOTSUPP,
                         "the kernel has no BTF (/sys/kernel/btf/vmlinux): it must be built with "
                         "CONFIG_DEBUG_INFO_BTF");
    ret->prev_state = kernel_tracepoint_arguments(btf, "sched_switch") >= 4;
    ret->locks = kernel_tracepoint_arguments(btf, "contention_begin") > 0;
    btf__free(btf);
    return 0;
}

struct prcb_head_block bpf_account_head(uint32_t features, bool locks)
{
    return (struct prcb_head_block){
        .magic = PRCB_ABI_MAGIC,
        .abi_major = PRCB_ABI_MAJOR,
        .abi_minor = PRCB_ABI_MINOR,
        .head_size = sizeof(struct prcb_head_block),
        .account_size = sizeof(struct prcb_account_block),
        .account_stride = sizeof(struct prcb_account_block),
        .features = features | (locks ? PRCB_FEATURE_LOCKS : 0),
        .writer_pid = (__u32)getpid(),
        .clock_offset = features & PRCB_FEATURE_RQ_CLOCK ? PRCB_OFFSET_UNKNOWN : 0,
        .writer = PRCB_VERSION,
    };
}

static bool offset_is_known(const struct prcb_head_block *head)
{
    return __atomic_load_n(&head->clock_offset, __ATOMIC_RELAXED) != PRCB_OFFSET_UNKNOWN;
}

/* The offset between the writer's clock and ours comes from switches: make some,
 * enough that the smallest difference is near the true one. */
int bpf_settle_clock(const struct prcb_head_block *head, uint32_t *calibrating,
                     struct prcb_error *err)
{
    const struct timespec pause = {.tv_nsec = 300000};

    if (!(head->features & PRCB_FEATURE_RQ_CLOCK))
        return 0;
    *calibrating = 1;
    for (int i = 0; i < 8 || (i < 1000 && !offset_is_known(head)); i++)
        nanosleep(&pause, NULL);
    *calibrating = 0;
    if (!offset_is_known(head))
        return prcb_fail(err, -EIO,
                         "the sched_switch program does not run: is BPF held back by the kernel "
                         "(kernel.ftrace_enabled, lockdown)?");
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

int bpf_register_pass(bool *narrow, int program, struct prcb_bpf_request *request,
                      struct prcb_bpf_request *asked, __u32 number, unsigned pass, bool *ret_again)
{
    bool process = asked->what == PRCB_REGISTER_PROCESS, cut;
    int result;

    asked->last = pass == PRCB_REGISTER_PASSES - 1;
    if (asked->last)
        number = 0; /* over all tasks: never cut short */
    *request = *asked;
    result =
        bpf_run_iterator(narrow, program, asked->what == PRCB_REGISTER_THREAD ? (pid_t)number : 0,
                         process ? (pid_t)number : 0);
    if (result && result != -ESRCH) /* nothing was seen: the caller says what */
        return result;
    cut = process && number && *narrow && request->cut;
    *ret_again = !asked->last && (cut || request->again);
    return 0;
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
