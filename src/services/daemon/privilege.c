/* SPDX-License-Identifier: BSD-2-Clause
 *
 * prcbd keeps CAP_BPF, to make clients' maps and to run programs that are loaded, and
 * CAP_PERFMON, without which the kernel does not attach an iterator to a program that reads
 * kernel memory. Once the start is over it needs nothing else (CAP_SYS_ADMIN to mount and to
 * take over maps by their number, CAP_SYS_RESOURCE, CAP_CHOWN).
 */
#include "privilege.h"

#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <pwd.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "error.h"
#include "read_file.h"

#ifndef CAP_PERFMON
#define CAP_PERFMON 38
#define CAP_BPF     39
#endif

static int set_capabilities(const unsigned *list, size_t count)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2] = {{0}};

    for (size_t i = 0; i < count; i++) {
        data[list[i] / 32].permitted |= 1u << list[i] % 32;
        data[list[i] / 32].effective |= 1u << list[i] % 32;
    }
    return syscall(SYS_capset, &header, data) ? -errno : 0;
}

static int become(const char *name, struct prcb_error *err)
{
    const struct passwd *user;

    errno = 0;
    user = getpwnam(name);
    if (!user)
        return prcb_fail(err, -ENOENT,
                         "user %s does not exist: create it (systemd-sysusers), or name another by "
                         "--user or in prcbd.conf",
                         name);
    if (prctl(PR_SET_KEEPCAPS, 1) || setgroups(0, NULL) ||
        setresgid(user->pw_gid, user->pw_gid, user->pw_gid) ||
        setresuid(user->pw_uid, user->pw_uid, user->pw_uid) || prctl(PR_SET_KEEPCAPS, 0))
        return prcb_fail(err, -errno, "cannot become user %s: %s", name, strerror(errno));
    return 0;
}

/* Drops what a program started from here could be given; prcbd starts none. */
static void drop_bounding_set(void)
{
    for (unsigned cap = 0; prctl(PR_CAPBSET_READ, cap) >= 0; cap++)
        prctl(PR_CAPBSET_DROP, cap);
}

int privilege_check_bpf(struct prcb_error *err)
{
    static const char path[] = "/proc/sys/kernel/unprivileged_bpf_disabled";
    char text[8] = "";
    ssize_t got = read_start(path, text, sizeof(text) - 1);
    int result = got < 0 ? (int)got : got ? 0 : -EIO;

    if (result)
        return prcb_fail(err, -EPERM,
                         "%s: %s: whether users may load BPF programs cannot be found out; "
                         "allow_unprivileged_bpf = yes in prcbd.conf does without",
                         path, strerror(-result));
    if (text[0] != '0')
        return 0;
    return prcb_fail(err, -EPERM,
                     "every user may load BPF programs here, and write with them what prcbd passes "
                     "to be read: run sysctl -w kernel.unprivileged_bpf_disabled=2, or set "
                     "allow_unprivileged_bpf = yes in prcbd.conf");
}

int privilege_drop(const char *user, struct prcb_error *err)
{
    static const unsigned kept[] = {CAP_BPF, CAP_PERFMON};
    int result = 0;

    drop_bounding_set();
    if (*user)
        result = become(user, err);
    if (result)
        return result;
    result = set_capabilities(kept, sizeof(kept) / sizeof(kept[0]));
    if (result)
        return prcb_fail(err, result, "capabilities cannot be dropped: %s", strerror(-result));
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
        prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0))
        return prcb_fail(err, -errno, "no_new_privs cannot be set: %s", strerror(errno));
    /* No process of the same user may look into this one. */
    prctl(PR_SET_DUMPABLE, 0);
    return 0;
}
