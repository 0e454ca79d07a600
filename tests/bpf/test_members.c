/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Kernels whose structures lack a member that the programs read, or have it in another type: made
 * up of this kernel's own types (BTF), in which the member has another name, or a type of other
 * width or sign. Each costs what its row says and nothing more, on a session that measures all the
 * same, or the programs are refused by a sentence that names it. A member that the programs read
 * and no row has fails the test, so that whoever reads a new one says what a kernel without it
 * costs.
 *
 * The programs are still checked and run by this kernel, so all that is left is right.
 *
 *   test_bpf_members --without STRUCTURE MEMBER    writes such types; also ENUMERATION CONSTANT
 *   test_bpf_members --beyond STRUCTURE MEMBER     the member lies behind its structure's end: the
 *                                                  kernel's verifier refuses to read it
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/btf.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <cmocka.h>

#include <prcb/prcb.h>
#include <prcb/processors.h>
#include <prcb/sample.h>

#include "accounts.h"
#include "accounts.skel.h"
#include "kernel_types.h"

#define VMLINUX "/sys/kernel/btf/vmlinux"

/* ---- a kernel without a member ---- */

static uint8_t *types; /* the kernel's, with "prcb_renamed" at the end of its strings */
static size_t types_bytes;
static struct btf *kernel;
static char source[64]; /* of the file that the library reads */
static int source_fd = -1;

static const char renamed[] = "prcb_renamed";

static int read_kernel(void **state)
{
    int fd = open(VMLINUX, O_RDONLY | O_CLOEXEC);
    struct btf_header *header;
    struct stat st;
    size_t have = 0;
    ssize_t got;

    if (fd < 0)
        return 0;
    assert_int_equal(fstat(fd, &st), 0);
    types = malloc((size_t)st.st_size + sizeof(renamed));
    assert_non_null(types);
    while ((got = read(fd, types + have, (size_t)st.st_size - have)) > 0)
        have += (size_t)got;
    close(fd);
    assert_int_equal(have, st.st_size);
    kernel = btf__new(types, (__u32)have);
    assert_non_null(kernel);
    header = (void *)types;
    /* The strings are the last part. */
    assert_int_equal(header->hdr_len + header->str_off + header->str_len, have);
    memcpy(types + have, renamed, sizeof(renamed));
    header->str_len += sizeof(renamed);
    types_bytes = have + sizeof(renamed);
    source_fd = memfd_create("kernel", MFD_CLOEXEC);
    assert_true(source_fd >= 0);
    assert_int_equal(write(source_fd, types, types_bytes), types_bytes);
    snprintf(source, sizeof(source), "/proc/self/fd/%d", source_fd);
    kernel_types_source = source;
    return 0;
}

static int forget_kernel(void **state)
{
    btf__free(kernel);
    free(types);
    close(source_fd);
    return 0;
}

/* Where the name of a member stands in the file; 0: this kernel has none of it. In unnamed parts
 * too. */
static size_t find_member(__u32 id, const char *name)
{
    const struct btf_header *header = (const void *)types;
    const struct btf_type *type = btf__type_by_id(kernel, id);
    size_t at = 0;

    for (int i = 0; type && btf_is_composite(type) && !at && i < btf_vlen(type); i++) {
        const struct btf_member *member = &btf_members(type)[i];
        const char *text = btf__name_by_offset(kernel, member->name_off);

        if (!strcmp(text, name))
            at = (size_t)((const uint8_t *)member - (const uint8_t *)btf__type_by_id(kernel, 1)) +
                 header->hdr_len + header->type_off;
        else if (!*text)
            at = find_member(member->type, name);
    }
    return at;
}

/* Puts another member in the place of one, or (NULL) the kernel's own again. false: it has none. */
static bool put_member(const char *structure, const char *name,
                       void (*change)(struct btf_member *member, const char *how), const char *how)
{
    int id = btf__find_by_name_kind(kernel, structure, BTF_KIND_STRUCT);
    size_t at = id > 0 ? find_member((__u32)id, name) : 0;
    struct btf_member member;

    if (!at)
        return false;
    memcpy(&member, types + at, sizeof(member));
    if (change)
        change(&member, how);
    assert_int_equal(pwrite(source_fd, &member, sizeof(member), (off_t)at), sizeof(member));
    return true;
}

static void change_name(struct btf_member *member, const char *how)
{
    const struct btf_header *header = (const void *)types;

    member->name_off = header->str_len - (__u32)sizeof(renamed);
}

static void change_type(struct btf_member *member, const char *how)
{
    int id = btf__find_by_name_kind(kernel, how, BTF_KIND_INT);

    assert_true(id > 0);
    member->type = (__u32)id;
}

/* Further than any structure is long, and no further than a load reaches. */
static void change_place(struct btf_member *member, const char *how)
{
    member->offset = 32000 * 8;
}

/* ---- what each costs ---- */

enum cost {
    REFUSED,    /* the programs; the words name the member */
    NOTHING,    /* there is a second source, or what is coarser is a bound of the docs */
    MIGRATIONS, /* the figure is absent */
    READY,
    SYSCALL, /* and a limit */
    REGISTERS,
    CGROUP,
    UNREGISTERED, /* SYSCALL and REGISTERS */
    LIMIT,        /* prcb_session_limit tells */
};

static const struct row {
    const char *structure, *member;
    enum cost cost;
    const char *type; /* that the member has; NULL: there is none of this name */
} account_rows[] = {
    {"task_struct", "__state", REFUSED},
    {"task_struct", "flags", REFUSED},
    {"task_struct", "nvcsw", REFUSED},
    {"task_struct", "nivcsw", REFUSED},
    {"task_struct", "pid", REFUSED},
    {"task_struct", "tgid", REFUSED},
    {"task_struct", "comm", REFUSED},
    {"task_struct", "se", REFUSED},
    {"task_struct", "thread_pid", REFUSED},
    {"task_struct", "group_leader", REFUSED},
    {"task_struct", "on_cpu", REFUSED}, /* with more than one processor */
    {"pid", "level", REFUSED},
    {"pid", "numbers", REFUSED},
    {"upid", "nr", REFUSED},
    {"upid", "ns", REFUSED},
    {"pid_namespace", "ns", REFUSED},
    {"ns_common", "inum", REFUSED},
    {"sched_entity", "nr_migrations", MIGRATIONS},
    {"task_struct", "sched_info", READY},
    {"sched_info", "run_delay", READY},
    {"sched_info", "last_arrival", READY},
    {"sched_info", "last_queued", READY},
    {"sched_entity", "cfs_rq", READY}, /* and the run queue's clock: its stamps are */
    {"cfs_rq", "rq", READY},
    {"rq", "clock", READY},
    {"task_struct", "cgroups", CGROUP},
    {"css_set", "dfl_cgrp", CGROUP},
    {"cgroup", "kn", CGROUP},
    {"cgroup", "self", CGROUP},
    {"kernfs_node", "id", CGROUP},
    {"cgroup_subsys_state", "cgroup", CGROUP},
    {"cgroup_subsys_state", "parent", CGROUP},
#if defined(__x86_64__)
    {"pt_regs", "orig_ax", SYSCALL},
    {"pt_regs", "bx", SYSCALL},
    {"pt_regs", "di", SYSCALL},
    {"pt_regs", "dx", NOTHING},
    {"pt_regs", "si", NOTHING}, /* no holder of a futex that a short wait was for */
    {"pt_regs", "ip", REGISTERS},
    {"pt_regs", "sp", REGISTERS},
    {"pt_regs", "bp", REGISTERS},
    {"pt_regs", "cs", NOTHING}, /* looked at in place of thread_info.status */
#else
    {"pt_regs", "orig_x0", SYSCALL},
    {"pt_regs", "syscallno", SYSCALL},
    {"pt_regs", "pc", REGISTERS},
    {"pt_regs", "sp", REGISTERS},
    {"pt_regs", "regs", REGISTERS},
    {"pt_regs", "pstate", NOTHING},
#endif
    {"task_struct", "thread_info", NOTHING}, /* pt_regs tells 32-bit calls too */
    {"thread_info", "flags", NOTHING},
    {"thread_info", "status", NOTHING},
    {"task_struct", "files", LIMIT},
    {"files_struct", "fdt", LIMIT},
    {"fdtable", "max_fds", LIMIT},
    {"fdtable", "fd", LIMIT},
    {"file", "f_inode", LIMIT},
    {"inode", "i_mode", LIMIT},
    {"inode", "i_ino", NOTHING}, /* descriptors' files are named as of now */
    {"inode", "i_sb", NOTHING},
    {"super_block", "s_dev", NOTHING},
    {"file", "f_path", NOTHING}, /* eventfd is fd */
    {"file", "private_data", NOTHING},
    {"path", "dentry", NOTHING},
    {"dentry", "d_name", NOTHING},
    {"qstr", "name", NOTHING},
    {"task_struct", "throttled", NOTHING}, /* cfs_rq.throttle_count, or LIMIT: see below */
    {"cfs_rq", "throttle_count", NOTHING},
    {"task_struct", "rt", NOTHING}, /* held back by a group's real-time budget is preempted */
    {"sched_rt_entity", "parent", NOTHING},
    {"sched_rt_entity", "rt_rq", NOTHING},
    {"rt_rq", "rt_throttled", NOTHING},
    {"task_struct", "dl", NOTHING}, /* ... and by SCHED_DEADLINE's quantum */
    {"sched_dl_entity", "dl_throttled", NOTHING},
    {"sched_dl_entity", "deadline", NOTHING}, /* ready time after it is throttled */
    {"sched_dl_entity", "dl_deadline", NOTHING},
    {"sched_dl_entity", "dl_period", NOTHING},
    {"rq", "nr_switches", NOTHING}, /* of processors */
    {"sched_entity", "sched_delayed", NOTHING},
    {"sched_entity", "sum_exec_runtime", NOTHING}, /* quantum is preempted */
    {"sched_entity", "prev_sum_exec_runtime", NOTHING},
    {"sched_entity", "slice", NOTHING}, /* 0.75 ms */
    {"task_struct", "on_rq", NOTHING},  /* a guess at the start */
    {"task_struct", "exit_state", NOTHING},
    {"task_struct", "prio", NOTHING},      /* preempted and quantum of real-time tasks */
    {"task_struct", "mm", NOTHING},        /* mmap-lock is rwsem */
    {"mm_struct", "mmap_lock", NOTHING},   /* the same */
    {"mm_struct", "flags", NOTHING},       /* prcbd's */
    {"task_struct", "in_iowait", NOTHING}, /* disk is file */
    {"task_struct", "frozen", NOTHING},    /* the second freezer's are other */
    {"task_struct", "signal", NOTHING},    /* the registrar looks over all tasks */
    {"task_struct", "thread_node", NOTHING},
    {"signal_struct", "thread_head", NOTHING},
    {"list_head", "next", NOTHING},
    {"task_struct", "pid_links", NOTHING}, /* prcbd's, and below */
    {"task_struct", "real_cred", NOTHING},
    {"task_struct", "exec_state", NOTHING},
    {"task_struct", "start_boottime", NOTHING},
    {"task_struct", "bpf_storage", NOTHING}, /* then each task is looked up */
    {"pid", "tasks", NOTHING},
    {"hlist_head", "first", NOTHING},
    {"hlist_node", "next", NOTHING},
    {"task_struct", "in_memstall", NOTHING},    /* reclaim is the wait's own cause */
    {"task_struct", "nameidata", NOTHING},      /* opening a FIFO is file */
    {"task_struct", "worker_private", NOTHING}, /* a blocked worker of io_uring is worker */
    {"io_worker", "cur_work", NOTHING},
    {"nameidata", "inode", NOTHING},
    {"cfs_rq", "tg", NOTHING}, /* ready time after a quota's end is throttled */
    {"cfs_rq", "throttled_clock_self", NOTHING},
    {"cfs_rq", "throttled_clock_self_time", NOTHING},
    {"cfs_rq", "throttled_clock_pelt", NOTHING},
    {"cfs_rq", "throttled_clock_pelt_time", NOTHING},
    {"rq", "clock_pelt", NOTHING},
    {"rq", "lost_idle_time", NOTHING},
    {"irqaction", "flags", NOTHING}, /* arm64: ticks are told by their softirqs */
    {"irqaction", "name", NOTHING},
    {"task_struct", "seccomp", NOTHING}, /* a call that a supervisor answers is other */
    {"seccomp", "mode", NOTHING},
    {"seccomp", "filter", NOTHING},
    {"seccomp_filter", "prev", NOTHING},
    {"seccomp_filter", "notif", NOTHING},
    {"notification", "notifications", NOTHING},
    {"seccomp_knotif", "task", NOTHING},
    {"seccomp_knotif", "list", NOTHING},
    {"list_head", "prev", NOTHING},
    {"task_struct", "blocker", NOTHING}, /* the lock's owner is read */
    {"signal_struct", "group_exec_task", NOTHING},
    {"pipe_inode_info", "head", NOTHING}, /* a pipe is not known to be full or empty */
    {"pipe_inode_info", "tail", NOTHING},
    {"pipe_inode_info", "max_usage", NOTHING},
    {"mutex", "owner", NOTHING}, /* nobody is known to have held it */
    {"rw_semaphore", "owner", NOTHING},
};
#define ACCOUNT_ROWS (sizeof(account_rows) / sizeof(account_rows[0]))

/* Of what kernels may make of numbers. */
static const struct row typed_rows[] = {
    {"task_struct", "on_cpu", NOTHING, "unsigned char"}, /* 7.2 */
    {"task_struct", "on_rq", NOTHING, "unsigned char"},  /* 7.2 */
    {"task_struct", "on_rq", NOTHING, "signed char"},
    {"task_struct", "__state", NOTHING, "int"},
    {"task_struct", "__state", NOTHING, "short unsigned int"},
    {"task_struct", "exit_state", NOTHING, "unsigned char"},
    {"task_struct", "flags", NOTHING, "int"},
    {"task_struct", "pid", NOTHING, "unsigned int"},
    {"task_struct", "prio", NOTHING, "signed char"},
    {"task_struct", "nvcsw", NOTHING, "long int"},
    {"task_struct", "nvcsw", NOTHING, "unsigned int"},
    {"task_struct", "nivcsw", NOTHING, "unsigned int"},
    {"sched_entity", "slice", NOTHING, "int"},
    {"sched_entity", "slice", NOTHING, "unsigned int"},
    {"sched_entity", "sum_exec_runtime", NOTHING, "long int"},
    {"sched_entity", "nr_migrations", MIGRATIONS, "unsigned int"},
    {"sched_entity", "nr_migrations", MIGRATIONS, "int"},
    {"sched_entity", "sum_exec_runtime", NOTHING, "int"}, /* quantum is preempted */
    {"sched_entity", "prev_sum_exec_runtime", NOTHING, "int"},
    {"sched_info", "run_delay", READY, "int"},
    {"sched_info", "last_arrival", READY, "int"},
    {"sched_info", "last_queued", READY, "int"},
    {"cfs_rq", "throttle_count", NOTHING, "short int"},
    {"rq", "clock", READY, "int"},
    {"rq", "nr_switches", NOTHING, "int"}, /* of processors */
    {"sched_info", "run_delay", NOTHING, "long int"},
    {"cfs_rq", "throttle_count", NOTHING, "unsigned char"},
    {"rq", "clock", NOTHING, "long int"},
    {"rq", "nr_switches", NOTHING, "unsigned int"},
    {"upid", "nr", NOTHING, "unsigned int"},
    {"fdtable", "max_fds", LIMIT, "short unsigned int"},
    {"fdtable", "max_fds", LIMIT, "short int"},
    {"inode", "i_mode", LIMIT, "unsigned int"},
    {"kernfs_node", "id", CGROUP, "int"},
    {"thread_info", "status", NOTHING, "short int"},
    {"inode", "i_ino", NOTHING, "unsigned int"},
    {"thread_info", "flags", NOTHING, "unsigned int"},
};
#define TYPED_ROWS (sizeof(typed_rows) / sizeof(typed_rows[0]))

/* The same for a constant of an enumeration: what helpers and maps a kernel has. */
static bool put_constant(const char *enumeration, const char *name, bool hidden)
{
    const struct btf_header *header = (const void *)types;
    int id = btf__find_by_name_kind(kernel, enumeration, BTF_KIND_ENUM);
    const struct btf_type *type = id > 0 ? btf__type_by_id(kernel, (__u32)id) : NULL;

    for (int i = 0; type && i < btf_vlen(type); i++) {
        const struct btf_enum *constant = &btf_enum(type)[i];
        __u32 name_off = hidden ? header->str_len - (__u32)sizeof(renamed) : constant->name_off;
        size_t at =
            (size_t)((const uint8_t *)constant - (const uint8_t *)btf__type_by_id(kernel, 1)) +
            header->hdr_len + header->type_off;

        if (strcmp(btf__name_by_offset(kernel, constant->name_off), name))
            continue;
        assert_int_equal(pwrite(source_fd, &name_off, sizeof(name_off), (off_t)at),
                         sizeof(name_off));
        return true;
    }
    return false;
}

/* The same for a type's own name: a tracepoint's, or a function's that programs may call. */
static bool put_type(const char *name, bool hidden)
{
    const struct btf_header *header = (const void *)types;
    int id = btf__find_by_name(kernel, name);
    const struct btf_type *type = id > 0 ? btf__type_by_id(kernel, (__u32)id) : NULL;
    __u32 name_off;
    size_t at;

    if (!type)
        return false;
    name_off = hidden ? header->str_len - (__u32)sizeof(renamed) : type->name_off;
    at = (size_t)((const uint8_t *)type - (const uint8_t *)btf__type_by_id(kernel, 1)) +
         header->hdr_len + header->type_off + offsetof(struct btf_type, name_off);
    assert_int_equal(pwrite(source_fd, &name_off, sizeof(name_off), (off_t)at), sizeof(name_off));
    return true;
}

static bool is_type(const struct row *row)
{
    return !strcmp(row->structure, "type");
}

static bool is_constant(const struct row *row)
{
    return btf__find_by_name_kind(kernel, row->structure, BTF_KIND_ENUM) > 0;
}

static bool change(const struct row *row)
{
    if (is_type(row))
        return put_type(row->member, true);
    if (is_constant(row))
        return put_constant(row->structure, row->member, true);
    return put_member(row->structure, row->member, row->type ? change_type : change_name,
                      row->type);
}

static void change_back(const struct row *row)
{
    if (is_type(row))
        put_type(row->member, false);
    else if (is_constant(row))
        put_constant(row->structure, row->member, false);
    else
        put_member(row->structure, row->member, NULL, NULL);
}

static const char *as(const struct row *row)
{
    return row->type ? row->type : "none";
}

static const struct row *row_of(const char *structure, const char *member)
{
    for (size_t i = 0; i < ACCOUNT_ROWS; i++) {
        if (!strcmp(account_rows[i].structure, structure) &&
            !strcmp(account_rows[i].member, member))
            return &account_rows[i];
    }
    return NULL;
}

/* Structures of the kernel's, as the programs declare them: not contexts, maps and our own. */
static bool is_kernels(const char *structure)
{
    return btf__find_by_name_kind(kernel, structure, BTF_KIND_STRUCT) > 0 &&
           strncmp(structure, "bpf_", 4) && strncmp(structure, "prcb_", 5);
}

static void each_has_a_row(void **state)
{
    struct accounts_bpf *skeleton = accounts_bpf__open();
    const struct btf *own;
    unsigned without = 0;

    if (!kernel)
        skip();
    assert_non_null(skeleton);
    own = bpf_object__btf(skeleton->obj);
    for (__u32 id = 1; id < btf__type_cnt(own); id++) {
        const struct btf_type *type = btf__type_by_id(own, id);
        const char *structure = btf__name_by_offset(own, type->name_off);

        if (!btf_is_struct(type) || !*structure || !is_kernels(structure))
            continue;
        for (int i = 0; i < btf_vlen(type); i++) {
            const char *member = btf__name_by_offset(own, btf_members(type)[i].name_off);

            if (row_of(structure, member))
                continue;
            printf("    no row says what a kernel without %s.%s costs\n", structure, member);
            without++;
        }
    }
    accounts_bpf__destroy(skeleton);
    assert_int_equal(without, 0);
}

/* ---- accounts ---- */

static bool has_limit(struct prcb *p, const char *words)
{
    const char *limit;

    for (size_t i = 0; (limit = prcb_session_limit(p, i)); i++) {
        if (strstr(limit, words))
            return true;
    }
    return false;
}

static uint64_t bit_of(enum cost cost)
{
    switch (cost) {
    case MIGRATIONS:
        return PRCB_HAS_MIGRATIONS;
    case READY:
        return PRCB_HAS_READY;
    case SYSCALL:
        return PRCB_HAS_SYSCALL;
    case REGISTERS:
        return PRCB_HAS_REGISTERS;
    case CGROUP:
        return PRCB_HAS_CGROUP;
    case UNREGISTERED:
        return PRCB_HAS_SYSCALL | PRCB_HAS_REGISTERS;
    default:
        return 0;
    }
}

static uint64_t own_switches(void)
{
    struct rusage usage;

    getrusage(RUSAGE_THREAD, &usage);
    return (uint64_t)(usage.ru_nvcsw + usage.ru_nivcsw);
}

/* The figures that are always there are right: as many switches as the kernel counted, the parts
 * are the whole, each switch has a cause. */
static void measures(struct prcb *p, struct prcb_account *ret)
{
    const struct timespec pause = {.tv_nsec = 1000000};
    struct prcb_account a = {.size = sizeof(a)}, b = {.size = sizeof(b)};
    uint64_t before, between, after, wait = 0, counts = 0;
    struct prcb_thread *t;
    struct prcb_error err;

    assert_int_equal(prcb_profile_thread(p, gettid(), 0, &err), 0);
    assert_int_equal(prcb_thread_open_self(p, &t, &err), 0);
    do { /* whatever switches in the middle is in neither */
        before = own_switches();
        assert_int_equal(prcb_thread_read(t, &a), 0);
        between = own_switches();
    } while (before != between);
    for (int i = 0; i < 5; i++)
        nanosleep(&pause, NULL);
    do {
        before = own_switches();
        assert_int_equal(prcb_thread_read(t, &b), 0);
        after = own_switches();
    } while (before != after);
    assert_int_equal(b.switches - a.switches, after - between);
    for (int i = 0; i < PRCB_CAUSE_MAX; i++) {
        wait += b.waits[i].ns;
        counts += b.waits[i].count;
    }
    assert_int_equal(wait, b.wait_ns);
    assert_int_equal(counts + b.missed_switches, b.switches);
    assert_int_equal(b.run_ns + b.ready_ns + b.wait_ns + b.open.ns, b.wall_ns);
    assert_true(b.wait_ns > a.wait_ns);
    *ret = b;
    prcb_thread_close(t);
}

/* What an account has of a thread that sleeps in a call: all there is. */
static uint64_t present_of_sleeper(struct prcb *p)
{
    struct prcb_account a = {.size = sizeof(a)};
    struct prcb_error err;
    struct prcb_thread *t;
    int pipe_fds[2], tries = 0, result;
    pid_t child;

    assert_int_equal(pipe(pipe_fds), 0);
    child = fork();
    if (!child) {
        char byte;

        close(pipe_fds[1]);
        _exit(read(pipe_fds[0], &byte, 1) < 0);
    }
    close(pipe_fds[0]);
    assert_int_equal(prcb_profile_thread(p, child, 0, &err), 0);
    assert_int_equal(prcb_thread_open(p, child, &t, &err), 0);
    /* Switched out since it is profiled: woken up by a signal that is held back. */
    do {
        kill(child, SIGSTOP);
        kill(child, SIGCONT);
        usleep(1000);
        result = prcb_thread_read(t, &a);
        /* A virtual processor may be away while it writes. */
        assert_true(!result || result == -EAGAIN);
    } while ((result || !a.switches || a.flags & PRCB_ACCOUNT_RUNNING) && ++tries < 5000);
    prcb_thread_close(t);
    close(pipe_fds[1]);
    waitpid(child, NULL, 0);
    return a.present;
}

static void accounts_of(const struct row *row)
{
    static const uint64_t all = PRCB_HAS_MIGRATIONS | PRCB_HAS_READY | PRCB_HAS_SYSCALL |
                                PRCB_HAS_REGISTERS | PRCB_HAS_CGROUP;
    const struct prcb_options opts = {.size = sizeof(opts),
                                      .tier = PRCB_TIER_BPF,
                                      .max_threads = 64,
                                      .flags = PRCB_OPEN_REGISTERS};
    struct prcb_error err = {0};
    struct prcb_account a;
    struct prcb *p = NULL;
    uint64_t present, expected = all & ~bit_of(row->cost);
    int result;

    if (!change(row)) {
        printf("    %s.%s: this kernel has none\n", row->structure, row->member);
        return;
    }
    result = prcb_open(&opts, &p, &err);
    change_back(row);
    if (row->cost == REFUSED) {
        if (result)
            printf("    %s\n", err.text);
        assert_int_equal(result, -EOPNOTSUPP);
        assert_non_null(strstr(err.text, row->member));
        assert_non_null(strstr(err.text, row->structure));
        return;
    }
    if (result)
        print_error("%s.%s as %s: %s\n%s\n", row->structure, row->member, as(row), err.text,
                    prcb_load_log() ? prcb_load_log() : "");
    assert_int_equal(result, 0);
    measures(p, &a);
    present = present_of_sleeper(p);
    if ((present & all) != expected)
        print_error("%s.%s as %s: present %#llx, not %#llx\n", row->structure, row->member, as(row),
                    (unsigned long long)(present & all), (unsigned long long)expected);
    assert_int_equal(present & all, expected);
    for (uint64_t bits = bit_of(row->cost); bits; bits &= bits - 1)
        assert_non_null(prcb_absent_reason(p, bits & -bits));
    if (row->cost == MIGRATIONS)
        assert_int_equal(a.migrations, 0);
    assert_int_equal(has_limit(p, "system call: the kernel has no struct pt_regs"),
                     row->cost == SYSCALL || row->cost == UNREGISTERED);
    assert_int_equal(has_limit(p, "fdtable, file or inode"), row->cost == LIMIT);
    if (row->cost == CGROUP) {
        assert_int_equal(prcb_profile_cgroup(p, "/sys/fs/cgroup", &err), -EOPNOTSUPP);
        assert_non_null(strstr(err.text, "css_set"));
    }
    prcb_close(p);
}

static void accounts(void **state)
{
    if (!kernel)
        skip();
    for (size_t i = 0; i < ACCOUNT_ROWS; i++)
        accounts_of(&account_rows[i]);
    for (size_t i = 0; i < TYPED_ROWS; i++)
        accounts_of(&typed_rows[i]);
}

/* ---- processors, samples ---- */

/* Whether a kernel without this member lacks one of these. */
static bool is_one_of(const struct row *row, const char *const *names)
{
    for (; !row->type && *names; names++) {
        size_t length = strlen(row->structure);

        if (!strncmp(*names, row->structure, length) && (*names)[length] == '.' &&
            !strcmp(*names + length + 1, row->member))
            return true;
    }
    return false;
}

static void processors_of(const struct row *row)
{
    static const char *const needed[] = {"task_struct.pid", "task_struct.se", "sched_entity.cfs_rq",
                                         "cfs_rq.rq", NULL};
    const struct prcb_processors_options opts = {.size = sizeof(opts), .tier = PRCB_TIER_BPF};
    struct prcb_processor cpu = {.size = sizeof(cpu)};
    struct prcb_error err = {0};
    struct prcb_processors *v;
    int result, tries = 0;

    if (!change(row))
        return;
    result = prcb_processors_open(&opts, &v, &err);
    change_back(row);
    if (result)
        printf("    %s.%s as %s: %s\n", row->structure, row->member, as(row), err.text);
    assert_int_equal(result, is_one_of(row, needed) ? -EOPNOTSUPP : 0);
    if (result)
        return;
    do /* a virtual processor may be away while it writes */
        result = prcb_processor_read(v, (uint32_t)sched_getcpu(), &cpu);
    while (result == -EAGAIN && ++tries < 50);
    assert_int_equal(result, 0);
    assert_int_equal(cpu.idle_ns + cpu.user_ns + cpu.kernel_ns + cpu.interrupt_ns + cpu.dpc_ns +
                         cpu.steal_ns,
                     cpu.wall_ns);
    assert_int_equal(!(cpu.present & PRCB_CPU_HAS_MISSED), !strcmp(row->member, "nr_switches"));
    if (!(cpu.present & PRCB_CPU_HAS_MISSED))
        assert_non_null(prcb_processor_absent_reason(v, PRCB_CPU_HAS_MISSED));
    prcb_processors_close(v);
}

static void processors(void **state)
{
    const struct prcb_processors_options opts = {.size = sizeof(opts), .tier = PRCB_TIER_BPF};
    struct prcb_error err = {0};
    struct prcb_processors *v;

    if (prcb_processors_open(&opts, &v, &err)) {
        printf("    not run: %s\n", err.text); /* PREEMPT_RT */
        skip();
    }
    prcb_processors_close(v);
    for (size_t i = 0; i < ACCOUNT_ROWS; i++)
        processors_of(&account_rows[i]);
    for (size_t i = 0; i < TYPED_ROWS; i++)
        processors_of(&typed_rows[i]);
}

static int count_switch(const struct prcb_switch *record, void *ctx)
{
    ++*(unsigned *)ctx;
    return 0;
}

static void sampler_without(const struct row *row, bool is_needed)
{
    const struct prcb_sampler_options opts = {.size = sizeof(opts), .memory = 1 << 20};
    struct prcb_error err = {0};
    struct prcb_switches *switches;
    struct prcb_sampler *s;
    unsigned count = 0;
    int result;

    if (!change(row))
        return;
    result = prcb_sampler_open(&opts, &s, &err);
    change_back(row);
    if (result)
        printf("    %s.%s as %s: %s\n", row->structure, row->member, as(row), err.text);
    assert_int_equal(result, is_needed ? -EOPNOTSUPP : 0);
    if (result)
        return;
    assert_int_equal(prcb_switches_open(s, 0, &switches, &err), 0);
    usleep(1000);
    assert_int_equal(prcb_switches_read(switches, count_switch, &count, NULL), 0);
    assert_true(count);
    prcb_sampler_close(s);
}

static void sampler_of(const struct row *row)
{
    static const char *const needed[] = {"task_struct.__state", "task_struct.pid",
                                         "task_struct.se",      "task_struct.tgid",
                                         "task_struct.flags",   NULL};

    sampler_without(row, is_one_of(row, needed));
}

static void samples(void **state)
{
    for (size_t i = 0; i < ACCOUNT_ROWS; i++)
        sampler_of(&account_rows[i]);
    for (size_t i = 0; i < TYPED_ROWS; i++)
        sampler_of(&typed_rows[i]);
}

static bool refuses(const struct kernel_feature *feature, unsigned programs, int result,
                    const struct prcb_error *err)
{
    bool refused = feature->programs & programs;

    if (refused && !strstr(err->text, feature->words))
        print_error("%s: %s\n", feature->words, err->text);
    assert_true(!refused || strstr(err->text, feature->words));
    if (result != (refused ? -EOPNOTSUPP : 0))
        print_error("without %s: %d %s\n%s\n", feature->words, result, err->text,
                    prcb_load_log() ? prcb_load_log() : "");
    assert_int_equal(result, refused ? -EOPNOTSUPP : 0);
    return refused;
}

/* A kernel before the release that brought a helper, a map or a type of programs: each kind of
 * programs that cannot do without is refused by its name, and each other does all that it did. */
static void without_feature(const struct kernel_feature *feature)
{
    const struct row row = {feature->type, feature->name,
                            feature->programs & KERNEL_FOR_ACCOUNTS      ? REFUSED
                            : strcmp(feature->words, "bpf_task_pt_regs") ? NOTHING
                                                                         : UNREGISTERED};
    const struct prcb_processors_options processor_opts = {.size = sizeof(processor_opts),
                                                           .tier = PRCB_TIER_BPF};
    const struct prcb_options opts = {.size = sizeof(opts), .tier = PRCB_TIER_BPF};
    struct prcb_error err = {0};
    struct prcb_processors *v;
    struct btf *without;
    struct prcb *p;

    assert_true(change(&row));
    if (row.cost == REFUSED)
        refuses(feature, KERNEL_FOR_ACCOUNTS, prcb_open(&opts, &p, &err), &err);
    if (feature->programs & KERNEL_FOR_PROCESSORS &&
        !refuses(feature, KERNEL_FOR_PROCESSORS, prcb_processors_open(&processor_opts, &v, &err),
                 &err))
        prcb_processors_close(v);
    without = btf__parse(source, NULL);
    assert_non_null(without);
    refuses(feature, KERNEL_FOR_CLIENTS, kernel_check(without, KERNEL_FOR_CLIENTS, &err), &err);
    btf__free(without);
    change_back(&row);
    if (row.cost != REFUSED)
        accounts_of(&row);
    if (!(feature->programs & KERNEL_FOR_PROCESSORS))
        processors_of(&row);
    sampler_without(&row, feature->programs & KERNEL_FOR_SAMPLES);
}

static void features(void **state)
{
    static const struct row optional[] = {
        {"type", "bpf_rdonly_cast", NOTHING}, /* 6.2 */
        {"type", "btf_trace_contention_begin",
         NOTHING}, /* 5.19: locks of the kernel are other causes */
    };

    if (!kernel)
        skip();
    for (const struct kernel_feature *each = kernel_features; each->type; each++) {
        if (!strncmp(each->name, "BPF_", 4))
            without_feature(each);
    }
    for (size_t i = 0; i < sizeof(optional) / sizeof(optional[0]); i++) {
        accounts_of(&optional[i]);
        processors_of(&optional[i]);
        sampler_without(&optional[i], false);
    }
}

/* What prcbd reads of who somebody is, and of what is a map: without it, it does not start. */
static void who_is_needed_by_prcbd(void **state)
{
    static const char *const names[][2] = {
        {"task_struct", "real_cred"},
        {"task_struct", "start_boottime"},
        {"task_struct", "pid_links"},
        {"task_struct", "files"},
        {"files_struct", "fdt"},
        {"fdtable", "max_fds"},
        {"fdtable", "fd"},
        {"file", "f_inode"},
        {"file", "private_data"},
        {"inode", "i_mode"},
        {"socket", "sk"},
        {"sock", "sk_peer_cred"},
        {"sock", "sk_peer_pid"},
        {"pid", "tasks"},
        {"hlist_head", "first"},
        {"cred", "uid"},
        {"cred", "gid"},
        {"cred", "suid"},
        {"cred", "sgid"},
        {"cred", "euid"},
        {"cred", "egid"},
        {"cred", "cap_permitted"},
        {"cred", "user_ns"},
        {"user_namespace", "parent"},
        {"user_namespace", "owner"},
        {"user_namespace", "ns"},
        {"bpf_map", "id"},
        {"bpf_map", "name"},
    };

    if (!kernel)
        skip();
    assert_int_equal(kernel_check(kernel, KERNEL_FOR_CLIENTS, NULL), 0);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const struct row row = {.structure = names[i][0], .member = names[i][1]};
        struct prcb_error err = {0};
        struct btf *without;

        assert_true(change(&row));
        without = btf__parse(source, NULL);
        change_back(&row);
        assert_non_null(without);
        assert_int_equal(kernel_check(without, KERNEL_FOR_CLIENTS, &err), -EOPNOTSUPP);
        assert_non_null(strstr(err.text, names[i][0]));
        assert_non_null(strstr(err.text, names[i][1]));
        btf__free(without);
    }
}

/* For other tests: these types without a member or constant, or with a member beyond its
 * structure's end, on standard output. */
static int write_changed(const struct row *row, bool beyond)
{
    uint8_t page[65536];
    ssize_t got;

    read_kernel(NULL);
    if (!kernel ||
        !(beyond ? put_member(row->structure, row->member, change_place, NULL) : change(row)))
        return 1;
    for (off_t at = 0; (got = pread(source_fd, page, sizeof(page), at)) > 0; at += got) {
        if (fwrite(page, 1, (size_t)got, stdout) != (size_t)got)
            return 1;
    }
    return fflush(stdout) || got;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_has_a_row), cmocka_unit_test(accounts),
        cmocka_unit_test(features),       cmocka_unit_test(processors),
        cmocka_unit_test(samples),        cmocka_unit_test(who_is_needed_by_prcbd),
    };

    if (argc == 4 && (!strcmp(argv[1], "--without") || !strcmp(argv[1], "--beyond")))
        return write_changed(&(const struct row){argv[2], argv[3], NOTHING, NULL},
                             !strcmp(argv[1], "--beyond"));
    if (geteuid() || access(VMLINUX, R_OK)) {
        printf("needs root and " VMLINUX "\n");
        return 77;
    }
    return cmocka_run_group_tests(tests, read_kernel, forget_kernel);
}
