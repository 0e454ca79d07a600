/* SPDX-License-Identifier: BSD-2-Clause
 *
 * A call that is not allowed fails (calls.h), and the kernel writes a line to its log or the
 * audit daemon.
 */
#include "filter.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/seccomp.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "calls.h"
#include "error.h"
#include "sanitized.h"

/* Some architectures lack the calls that newer ones replaced. */
static const struct call_row allowed[] = {
    /* the socket and its clients */
    {SYS_epoll_ctl},
#ifdef SYS_epoll_wait
    {SYS_epoll_wait},
#endif
    {SYS_epoll_pwait},
    {SYS_epoll_pwait2},
    {SYS_accept4},
    {SYS_recvfrom},
    {SYS_recvmsg},
    {SYS_sendmsg},
    {SYS_sendto},
    {SYS_getsockopt},
    {SYS_pidfd_open},
#ifdef SYS_poll
    {SYS_poll},
#endif
    {SYS_ppoll},
    /* files and descriptors */
    {SYS_read},
    {SYS_write},
    {SYS_writev},
    {SYS_pread64},
    {SYS_close},
    {SYS_fcntl},
    {SYS_dup},
    {SYS_dup3},
    {SYS_lseek},
    {SYS_fstat},
    {SYS_newfstatat},
    {SYS_statx},
    {SYS_statfs},
    {SYS_fstatfs},
    {SYS_getdents64},
    {SYS_readlinkat},
    {SYS_faccessat},
    {SYS_faccessat2},
    {SYS_unlinkat}, /* the pins and the socket */
#ifdef SYS_open
    {SYS_stat},
    {SYS_lstat},
    {SYS_access},
    {SYS_readlink},
    {SYS_unlink},
    {SYS_rmdir},
    {SYS_dup2},
#endif
    /* the kernel side */
    {SYS_membarrier},
    {SYS_perf_event_open}, /* libbpf probes with it what the kernel supports */
    {SYS_memfd_create},    /* newer libbpf versions reserve descriptors with it */
    {SYS_ioctl},
    /* names of groups at a reload, by whatever nsswitch.conf names */
    {SYS_connect},
    {SYS_getsockname},
    {SYS_getpeername},
    {SYS_setsockopt},
    {SYS_uname},
    {SYS_getuid},
    {SYS_geteuid},
    {SYS_getgid},
    {SYS_getegid},
    {SYS_getgroups},
    {SYS_epoll_create1},
    {SYS_eventfd2},
    {SYS_timerfd_create},
    {SYS_timerfd_settime},
    /* the C library */
    {SYS_brk},
    {SYS_mmap},
    {SYS_munmap},
    {SYS_mremap},
    {SYS_mprotect},
    {SYS_madvise},
    {SYS_futex},
    {SYS_getrandom},
    {SYS_clock_gettime},
    {SYS_clock_getres},
    {SYS_clock_nanosleep},
    {SYS_nanosleep},
    {SYS_gettimeofday},
#ifdef SYS_time
    {SYS_time},
#endif
    {SYS_restart_syscall},
    {SYS_rt_sigaction},
    {SYS_rt_sigprocmask},
    {SYS_rt_sigreturn},
    {SYS_sigaltstack},
    {SYS_getpid},
    {SYS_gettid},
    {SYS_tgkill}, /* abort() */
    {SYS_sched_yield},
    {SYS_sched_getaffinity},
    {SYS_sysinfo},
    {SYS_prlimit64},
    {SYS_set_robust_list}, /* the second thread, which may be just starting, calls it */
    {SYS_rseq},
    {SYS_exit},
    {SYS_exit_group},
    {SYS_openat, 2, O_WRONLY | O_RDWR | O_CREAT | O_TRUNC, O_RDONLY},
#ifdef SYS_open
    {SYS_open, 1, O_WRONLY | O_RDWR | O_CREAT | O_TRUNC, O_RDONLY},
#endif
    {SYS_socket, 0, ~0u, AF_UNIX}, /* systemd, and who knows the groups */
    /* prcbd uses maps of clients, what is pinned, and programs that are loaded. It may not load
     * others, nor reach by its number what is not its own. */
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
    CALL_ROWS_END,
};

int filter_install(struct prcb_error *err)
{
    int result;

    if (SANITIZED)
        return prcb_fail(err, -EOPNOTSUPP,
                         "system calls are not filtered: prcbd was built with a sanitizer");
    result = calls_allow(allowed, NULL, SECCOMP_FILTER_FLAG_TSYNC | SECCOMP_FILTER_FLAG_LOG);
    if (result == -EOPNOTSUPP)
        return prcb_fail(
            err, result,
            "system calls are not filtered: the kernel has no seccomp, or no filter was written "
            "for this processor");
    return result ? prcb_fail(err, result,
                              "filter of system calls: %s: let it call seccomp(2), or set "
                              "system_call_filter = no",
                              strerror(-result))
                  : 0;
}
