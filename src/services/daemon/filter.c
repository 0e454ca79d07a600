/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What is not allowed fails with ENOSYS, and the kernel writes a line to its log or the audit
 * daemon. Not a signal, and not EPERM: a C library newer than these tables tries calls of its
 * kernel's first and goes on with older ones where they are missing, as on an old kernel.
 */
#include "filter.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/bpf.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "error.h"
#include "sanitized.h"

#if defined(__x86_64__)
#define FILTER_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define FILTER_ARCH AUDIT_ARCH_AARCH64
#endif

#ifdef FILTER_ARCH

/* A processor lacks those that newer calls replaced. */
static const int allowed[] = {
    /* the socket and its clients */
    SYS_epoll_ctl,
#ifdef SYS_epoll_wait
    SYS_epoll_wait,
#endif
    SYS_epoll_pwait,
    SYS_epoll_pwait2,
    SYS_accept4,
    SYS_recvfrom,
    SYS_recvmsg,
    SYS_sendmsg,
    SYS_sendto,
    SYS_getsockopt,
    SYS_pidfd_open,
#ifdef SYS_poll
    SYS_poll,
#endif
    SYS_ppoll,
    /* files and descriptors */
    SYS_read,
    SYS_write,
    SYS_writev,
    SYS_pread64,
    SYS_close,
    SYS_fcntl,
    SYS_dup,
    SYS_dup3,
    SYS_lseek,
    SYS_fstat,
    SYS_newfstatat,
    SYS_statx,
    SYS_statfs,
    SYS_fstatfs,
    SYS_getdents64,
    SYS_readlinkat,
    SYS_faccessat,
    SYS_faccessat2,
    SYS_unlinkat, /* the pins and the socket */
#ifdef SYS_open
    SYS_stat,
    SYS_lstat,
    SYS_access,
    SYS_readlink,
    SYS_unlink,
    SYS_rmdir,
    SYS_dup2,
#endif
    /* the kernel side */
    SYS_membarrier,
    SYS_perf_event_open, /* libbpf finds out with it what the kernel can */
    SYS_memfd_create,    /* newer ones keep places for descriptors with it */
    SYS_ioctl,
    /* names of groups at a reload, by whatever nsswitch.conf names */
    SYS_connect,
    SYS_getsockname,
    SYS_getpeername,
    SYS_setsockopt,
    SYS_uname,
    SYS_getuid,
    SYS_geteuid,
    SYS_getgid,
    SYS_getegid,
    SYS_getgroups,
    SYS_epoll_create1,
    SYS_eventfd2,
    SYS_timerfd_create,
    SYS_timerfd_settime,
    /* the C library */
    SYS_brk,
    SYS_mmap,
    SYS_munmap,
    SYS_mremap,
    SYS_mprotect,
    SYS_madvise,
    SYS_futex,
    SYS_getrandom,
    SYS_clock_gettime,
    SYS_clock_getres,
    SYS_clock_nanosleep,
    SYS_nanosleep,
    SYS_gettimeofday,
#ifdef SYS_time
    SYS_time,
#endif
    SYS_restart_syscall,
    SYS_rt_sigaction,
    SYS_rt_sigprocmask,
    SYS_rt_sigreturn,
    SYS_sigaltstack,
    SYS_getpid,
    SYS_gettid,
    SYS_tgkill, /* abort() */
    SYS_sched_yield,
    SYS_sched_getaffinity,
    SYS_sysinfo,
    SYS_prlimit64,
    SYS_set_robust_list, /* of the second thread, which may just be beginning */
    SYS_rseq,
    SYS_exit,
    SYS_exit_group,
};
#define ALLOWED (sizeof(allowed) / sizeof(allowed[0]))

/* Calls of which one argument decides: allowed when (argument & mask) == value, in one row or
 * another. */
static const struct {
    int number;
    unsigned argument;
    uint32_t mask, value;
} conditions[] = {
    {SYS_openat, 2, O_WRONLY | O_RDWR | O_CREAT | O_TRUNC, O_RDONLY},
#ifdef SYS_open
    {SYS_open, 1, O_WRONLY | O_RDWR | O_CREAT | O_TRUNC, O_RDONLY},
#endif
    {SYS_socket, 0, ~0u, AF_UNIX}, /* systemd, and who knows the groups */
    /* Maps of clients, what is pinned, programs that are loaded. Not: to load others, and to reach
     * what is not ours by its number. */
    {SYS_bpf, 0, ~0u, BPF_MAP_CREATE},
    {SYS_bpf, 0, ~0u, BPF_MAP_LOOKUP_ELEM},
    {SYS_bpf, 0, ~0u, BPF_MAP_UPDATE_ELEM},
    {SYS_bpf, 0, ~0u, BPF_MAP_UPDATE_BATCH},
    {SYS_bpf, 0, ~0u, BPF_MAP_DELETE_ELEM},
    {SYS_bpf, 0, ~0u, BPF_MAP_FREEZE},
    {SYS_bpf, 0, ~0u, BPF_OBJ_PIN},
    {SYS_bpf, 0, ~0u, BPF_OBJ_GET},
    {SYS_bpf, 0, ~0u, BPF_OBJ_GET_INFO_BY_FD},
    {SYS_bpf, 0, ~0u, BPF_PROG_TEST_RUN},
    {SYS_bpf, 0, ~0u, BPF_RAW_TRACEPOINT_OPEN},
    {SYS_bpf, 0, ~0u, BPF_LINK_CREATE},
    {SYS_bpf, 0, ~0u, BPF_ITER_CREATE},
};
#define CONDITIONS (sizeof(conditions) / sizeof(conditions[0]))

enum {
    HEAD = 4,
    EACH_CONDITION = 6,
    EACH = 2,
    MOST = HEAD + EACH_CONDITION * CONDITIONS + EACH * ALLOWED + 1
};

struct program {
    struct sock_filter code[MOST];
    unsigned short count;
};

static void add(struct program *p, uint16_t code, uint32_t k, uint8_t is, uint8_t is_not)
{
    p->code[p->count++] = (struct sock_filter){.code = code, .jt = is, .jf = is_not, .k = k};
}

#define LOAD   (BPF_LD | BPF_W | BPF_ABS)
#define IS     (BPF_JMP | BPF_JEQ | BPF_K)
#define MASK   (BPF_ALU | BPF_AND | BPF_K)
#define RETURN (BPF_RET | BPF_K)
#define REFUSE (SECCOMP_RET_ERRNO | ENOSYS)

/* The low half of an argument: flags and families have no more. */
static uint32_t argument_at(unsigned number)
{
    return (uint32_t)(offsetof(struct seccomp_data, args) + number * sizeof(uint64_t)) +
           (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? 4 : 0);
}

static void build(struct program *p)
{
    p->count = 0;
    add(p, LOAD, offsetof(struct seccomp_data, arch), 0, 0);
    add(p, IS, FILTER_ARCH, 1, 0);
    add(p, RETURN, REFUSE, 0, 0);
    add(p, LOAD, offsetof(struct seccomp_data, nr), 0, 0);
    for (size_t i = 0; i < ALLOWED; i++) {
        add(p, IS, (uint32_t)allowed[i], 0, 1);
        add(p, RETURN, SECCOMP_RET_ALLOW, 0, 0);
    }
    for (size_t i = 0; i < CONDITIONS; i++) {
        add(p, IS, (uint32_t)conditions[i].number, 0, EACH_CONDITION - 1);
        add(p, LOAD, argument_at(conditions[i].argument), 0, 0);
        add(p, MASK, conditions[i].mask, 0, 0);
        add(p, IS, conditions[i].value, 0, 1);
        add(p, RETURN, SECCOMP_RET_ALLOW, 0, 0);
        add(p, LOAD, offsetof(struct seccomp_data, nr), 0, 0);
    }
    add(p, RETURN, REFUSE, 0, 0);
}

static int install(void)
{
    struct program program;
    struct sock_fprog filter = {.filter = program.code};

    build(&program);
    filter.len = program.count;
    if (!syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
                 SECCOMP_FILTER_FLAG_TSYNC | SECCOMP_FILTER_FLAG_LOG, &filter))
        return 0;
    return errno == ENOSYS || errno == EINVAL ? -EOPNOTSUPP : -errno;
}

#endif

int filter_install(struct prcb_error *err)
{
    int result;

#if SANITIZED
    return prcb_fail(err, -EOPNOTSUPP, "no filter of system calls: built with a sanitizer");
#endif
#ifdef FILTER_ARCH
    result = install();
    if (result == -EOPNOTSUPP)
        return prcb_fail(err, result, "no filter of system calls: the kernel has no seccomp");
    return result ? prcb_fail(err, result,
                              "filter of system calls: %s: let it call seccomp(2), or set "
                              "system_call_filter = no",
                              strerror(-result))
                  : 0;
#else
    result = -EOPNOTSUPP;
    return prcb_fail(err, result, "no filter of system calls: none was written for this processor");
#endif
}
