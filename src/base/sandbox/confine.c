/* SPDX-License-Identifier: BSD-2-Clause */
#include "confine.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "calls.h"
#include "sanitized.h"

#define NOBODY  65534
#define NUMBERS 0x7fff0000 /* of users whom no system has (systemd's list), 65,536 of them */

int confine_descriptors(int keep)
{
    int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC), moved;

    if (nowhere < 0)
        return -errno;
    moved = fcntl(keep, F_DUPFD_CLOEXEC, 3);
    if (moved < 0 || dup2(nowhere, 0) < 0 || dup2(nowhere, 1) < 0 ||
        (!SANITIZED && dup2(nowhere, 2) < 0) || dup2(moved, 3) < 0)
        return -errno;
#ifdef SYS_close_range
    if (!syscall(SYS_close_range, 4u, ~0u, 0u))
        return 3;
#endif
    for (int fd = 4, most = (int)sysconf(_SC_OPEN_MAX); fd < most; fd++)
        close(fd);
    return 3;
}

/* Sets a limit, not above what it is: only root may raise it. */
static int set_limit(__rlimit_resource_t what, rlim_t value)
{
    struct rlimit now;

    if (getrlimit(what, &now))
        return -errno;
    value = value < now.rlim_max ? value : now.rlim_max;
    return setrlimit(what, &(struct rlimit){value, value}) ? -errno : 0;
}

static int set_limits(const struct sandbox_limits *limits)
{
    int result = set_limit(RLIMIT_CORE, 0);

    if (!result)
        result = set_limit(RLIMIT_FSIZE, 0);
    if (!result && limits->files)
        result = set_limit(RLIMIT_NOFILE, limits->files);
    if (!result && limits->memory && !SANITIZED)
        result = set_limit(RLIMIT_AS, limits->memory);
    return result;
}

/* A process that may become another user becomes one that no other process is: whoever runs as
 * nobody could end the child. In a user namespace there may be no such user, then nobody's rights
 * are left, or no nobody either: then only the user's own, without capabilities. */
int confine_identity(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct none[2] = {{0}};
    uid_t own = NUMBERS + ((uid_t)getpid() & 0xffff);

    if (!geteuid() && !setgroups(0, NULL) && !setresgid(NOBODY, NOBODY, NOBODY) &&
        setresuid(own, own, own) && setresuid(NOBODY, NOBODY, NOBODY))
        return -errno;
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    if (syscall(SYS_capset, &header, none))
        return -errno;
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ? -errno : 0;
}

/* ---- system calls -------------------------------------------------------------------- */

/* The child may use memory, the descriptors it was handed and the socket it answers on, and may
 * end. It may not open, connect, start or signal others, or change a file. fcntl can make the
 * kernel send signals (F_SETOWN, F_SETSIG), lock files and break into their leases; newfstatat,
 * the C library's fstat if the kernel has no call of that name alone, may ask about a
 * descriptor. */
static const struct call_row allowed[] = {
    {SYS_brk},
    {SYS_mmap},
    {SYS_munmap},
    {SYS_mremap},
    {SYS_mprotect},
    {SYS_madvise},
    {SYS_read},
    {SYS_pread64},
    {SYS_lseek},
    {SYS_close},
    {SYS_fstat},
    {SYS_dup},
    {SYS_recvmsg},
    {SYS_sendmsg},
    {SYS_sendto},
    {SYS_ppoll},
    {SYS_futex},
    {SYS_getrandom},
    {SYS_sched_yield},
    {SYS_clock_gettime},
    {SYS_gettimeofday},
    {SYS_rt_sigprocmask},
    {SYS_rt_sigreturn},
    {SYS_sigaltstack},
    {SYS_rt_sigaction},
    {SYS_setitimer},
    {SYS_getpid},
    {SYS_gettid},
    {SYS_restart_syscall},
    {SYS_exit},
    {SYS_exit_group},
#ifdef SYS_poll
    {SYS_poll},
#endif
    {SYS_fcntl, 1, ~0u, F_DUPFD},
    {SYS_fcntl, 1, ~0u, F_DUPFD_CLOEXEC},
    {SYS_fcntl, 1, ~0u, F_GETFD},
    {SYS_fcntl, 1, ~0u, F_SETFD},
    {SYS_fcntl, 1, ~0u, F_GETFL},
#ifdef SYS_newfstatat
    {SYS_newfstatat, 3, AT_EMPTY_PATH, AT_EMPTY_PATH},
#else
    {SYS_fstatat64, 3, AT_EMPTY_PATH, AT_EMPTY_PATH},
#endif
    CALL_ROWS_END,
};

/* A program that takes connections may also use these, on sockets that it has. */
static const struct call_row allowed_serving[] = {
    {SYS_accept4},    {SYS_recvfrom},   {SYS_writev},    {SYS_shutdown},
    {SYS_setsockopt}, {SYS_getsockopt}, {SYS_epoll_ctl}, {SYS_epoll_pwait},
#ifdef SYS_epoll_wait
    {SYS_epoll_wait},
#endif
    CALL_ROWS_END,
};

int confine_process(const struct sandbox_limits *limits)
{
    int result = set_limits(limits);

    if (!result)
        result = confine_identity();
    if (!result && prctl(PR_SET_DUMPABLE, 0))
        result = -errno;
    if (result || SANITIZED)
        return result;
    result = calls_allow(allowed, limits->serves ? allowed_serving : NULL, 0);
    /* If the kernel has no filters, ids, capabilities and limits still stand. */
    return result == -EOPNOTSUPP ? 0 : result;
}
