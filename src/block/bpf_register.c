/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Which threads the bpf tier profiles: existing ones are found by task iterators
 * that run the programs' registrar, new ones by the programs themselves.
 */
#include "tier_bpf.h"

#include <errno.h>
#include <linux/bpf.h>
#include <signal.h>
#include <string.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "cgroup.h"

#define CGROUP2_MAGIC 0x63677270

int bpf_run_iterator(struct bpf_state *s, struct bpf_program *program, pid_t tid, pid_t pid)
{
    union bpf_iter_link_info info = {.task = {.tid = (__u32)tid, .pid = (__u32)pid}};
    struct bpf_iter_attach_opts options;
    bool narrow = s->iter_by_task && (tid || pid);
    struct bpf_link *link;
    char nothing[64];
    int fd, result = 0;

    /* Not LIBBPF_OPTS: that assigns a whole structure, whose padding at the end compilers
     * need not clear, and libbpf refuses what is not zero there. */
    memset(&options, 0, sizeof(options));
    options.sz = sizeof(options);
    options.link_info = &info;
    options.link_info_len = sizeof(info);
    link = bpf_program__attach_iter(program, narrow ? &options : NULL);
    if (!link && narrow && (errno == EINVAL || errno == E2BIG)) {
        s->iter_by_task = false;
        link = bpf_program__attach_iter(program, NULL);
    }
    if (!link)
        return -errno;
    fd = bpf_iter_create(bpf_link__fd(link));
    if (fd < 0) {
        result = -errno;
    } else {
        ssize_t got;

        while ((got = read(fd, nothing, sizeof(nothing))) > 0 ||
               (got < 0 && (errno == EAGAIN || errno == EINTR)))
            ;
        if (got < 0)
            result = -errno;
        close(fd);
    }
    bpf_link__destroy(link);
    return result;
}

static int follow_new_tasks(struct bpf_state *s, struct prcb_error *err)
{
    return bpf_attach(s->skeleton->progs.prcb_newtask, &s->skeleton->links.prcb_newtask, err);
}

static __u32 pass_bits(unsigned follow)
{
    return (follow & PRCB_FOLLOW_THREADS ? PRCB_PASS_THREADS : 0) |
           (follow & PRCB_FOLLOW_CHILDREN ? PRCB_PASS_CHILDREN : 0);
}

/* One pass of the registrar; its answer is in the request. */
static int ask(struct bpf_state *s, enum prcb_bpf_what what, pid_t number, unsigned follow,
               struct prcb_bpf_request *ret, struct prcb_error *err)
{
    struct prcb_bpf_request *request = &s->skeleton->bss->request;
    int result = follow ? follow_new_tasks(s, err) : 0;

    if (result)
        return result;
    *request =
        (struct prcb_bpf_request){.what = what, .number = (__u32)number, .pass = pass_bits(follow)};
    result = bpf_run_iterator(s, s->skeleton->progs.prcb_register,
                              what == PRCB_REGISTER_THREAD ? number : 0,
                              what == PRCB_REGISTER_PROCESS ? number : 0);
    if (result == -ESRCH)
        result = 0; /* nothing was seen: the caller says what */
    if (result)
        return prcb_fail(err, result, "the task iterator failed: %s", strerror(-result));
    *ret = *request;
    return 0;
}

static int no_room(struct prcb *p, struct prcb_error *err)
{
    return prcb_fail(err, -ENOSPC, "all %u accounts are in use: ask for more (max_threads)",
                     p->max_threads);
}

/* Nothing was seen under this number. */
static int not_seen(const char *what, pid_t number, struct prcb_error *err)
{
    if (!kill(number, 0) || errno == EPERM)
        return prcb_fail(err, -ESRCH,
                         "%s %d: it has ended and waits to be reaped, or the kernel does not show "
                         "it to eBPF programs",
                         what, (int)number);
    return prcb_fail(err, -ESRCH, "%s %d: no such %s", what, (int)number, what);
}

int bpf_profile_thread(struct prcb *p, pid_t tid, unsigned follow, struct prcb_error *err)
{
    struct prcb_bpf_request answer = {0};
    int result = ask(p->bpf, PRCB_REGISTER_THREAD, tid, follow, &answer, err);

    if (result)
        return result;
    if (!answer.seen)
        return not_seen("thread", tid, err);
    return answer.full ? no_room(p, err) : 0;
}

/* Threads that a thread not yet registered creates meanwhile show up in the next
 * pass; those of registered ones are followed. Where none are to be, one pass is all
 * there is to do, and further ones would go on for as long as threads are created. */
int bpf_profile_process(struct prcb *p, pid_t pid, unsigned follow, struct prcb_error *err)
{
    struct prcb_bpf_request answer = {0};
    bool seen = false;
    int result;

    do {
        result = ask(p->bpf, PRCB_REGISTER_PROCESS, pid, follow, &answer, err);
        if (result)
            return result;
        seen |= answer.seen > 0;
    } while (answer.added && follow & PRCB_FOLLOW_THREADS);
    if (!seen)
        return not_seen("process", pid, err);
    return answer.full ? no_room(p, err) : 0;
}

int bpf_profile_all(struct prcb *p, struct prcb_error *err)
{
    struct prcb_bpf_request answer = {0};
    int result = follow_new_tasks(p->bpf, err);

    if (result)
        return result;
    p->bpf->skeleton->bss->scope.all = 1;
    do {
        result = ask(p->bpf, PRCB_REGISTER_ALL, 0, PRCB_FOLLOW_ALL, &answer, err);
    } while (!result && answer.added);
    return result;
}

/* Registers every thread that is in the cgroup now; one that ends meanwhile is no
 * error. Until a pass finds nobody new: threads are created and moved all the time. */
static int register_cgroup(struct prcb *p, const char *path, struct prcb_error *err)
{
    struct procfs files = {.root = -1}; /* a buffer for reading lists */
    struct pid_list list = {0};
    unsigned added;
    int result;

    do {
        added = 0;
        list.count = 0;
        result = cgroup_list_threads(&files, path, &list, err);
        for (size_t i = 0; !result && i < list.count; i++) {
            struct prcb_bpf_request answer = {0};

            result =
                ask(p->bpf, PRCB_REGISTER_THREAD, list.items[i], PRCB_FOLLOW_ALL, &answer, err);
            if (!result)
                added += answer.added;
        }
    } while (!result && added);
    pid_list_free(&list);
    procfs_close(&files);
    return result;
}

int bpf_profile_cgroup(struct prcb *p, const char *path, struct prcb_error *err)
{
    struct accounts_bpf *skeleton = p->bpf->skeleton;
    struct statfs fs;
    struct stat st;
    int result;

    if (stat(path, &st) || statfs(path, &fs))
        return prcb_fail(err, -errno, "cgroup %s: %s", path, strerror(errno));
    if (skeleton->bss->scope.cgroup && skeleton->bss->scope.cgroup != st.st_ino)
        return prcb_fail(err, -EBUSY, "cgroup %s: this session follows another cgroup already",
                         path);
    result =
        bpf_attach(skeleton->progs.prcb_cgroup_attach, &skeleton->links.prcb_cgroup_attach, err);
    if (!result)
        result = follow_new_tasks(p->bpf, err);
    if (result)
        return result;
    skeleton->bss->scope.cgroup_v2 = fs.f_type == CGROUP2_MAGIC;
    skeleton->bss->scope.cgroup = st.st_ino;
    result = register_cgroup(p, path, err);
    if (!result && !p->bpf->cgroup) {
        p->bpf->cgroup = strdup(path);
        result = p->bpf->cgroup ? 0 : prcb_fail(err, -ENOMEM, "out of memory");
    }
    if (result)
        skeleton->bss->scope.cgroup = 0;
    return result;
}

/* Processes that were moved into the cgroup: their leaders are profiled already. */
int bpf_refresh(struct prcb *p, struct prcb_error *err)
{
    struct bpf_state *s = p->bpf;
    __u64 moved = __atomic_load_n(&s->skeleton->bss->scope.moved, __ATOMIC_RELAXED);

    if (moved == s->moved || !s->cgroup)
        return 0;
    s->moved = moved;
    return register_cgroup(p, s->cgroup, err);
}
