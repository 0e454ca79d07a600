/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Which threads the bpf tier profiles: existing ones are found by task iterators
 * that run the programs' registrar, new ones by the programs themselves.
 */
#include "tier_bpf.h"

#include <errno.h>
#include <string.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include <bpf/libbpf.h>

#include "account_programs.h"
#include "bpf_run.h"
#include "cgroup.h"

#define CGROUP2_MAGIC 0x63677270

/* A tracepoint is switched on by changing an instruction. On arm64 another processor may go on with
 * the one that it fetched before until an exception synchronizes it, which not all kernels see to.
 * After a grace period of RCU each has been interrupted, or was idle or in user mode, which it
 * leaves by an exception. */
static int synchronize_code(struct prcb_error *err)
{
    int result = 0;

#ifdef __aarch64__
    result = bpf_wait_for_programs();
#endif
    return result ? prcb_fail(err, result, "the processors cannot be made to see new programs: %s",
                              strerror(-result))
                  : 0;
}

static int follow_new_tasks(struct bpf_state *s, struct prcb_error *err)
{
    int result = 0;

    if (s->skeleton->links.prcb_newtask)
        return 0;
    if (bpf_program__autoload(s->skeleton->progs.prcb_newborn))
        result = bpf_attach(s->skeleton->progs.prcb_newborn, &s->skeleton->links.prcb_newborn, err);
    if (!result)
        result = bpf_attach(s->skeleton->progs.prcb_newtask, &s->skeleton->links.prcb_newtask, err);
    return result ? result : synchronize_code(err);
}

static __u32 pass_bits(unsigned follow)
{
    return (follow & PRCB_FOLLOW_THREADS ? PRCB_PASS_THREADS : 0) |
           (follow & PRCB_FOLLOW_CHILDREN ? PRCB_PASS_CHILDREN : 0);
}

/* Passes until none is to be repeated; the last one also takes tasks in the making, for a virtual
 * processor may be stopped while it makes one. */
static int ask(struct bpf_state *s, enum prcb_bpf_what what, pid_t number, unsigned follow,
               struct prcb_bpf_request *ret, struct prcb_error *err)
{
    struct prcb_bpf_request asked = {
        .what = what, .number = (__u32)number, .pass = pass_bits(follow)};
    struct prcb_bpf_request answer = {0};
    int result = follow ? follow_new_tasks(s, err) : 0;
    __u32 added = 0;

    if (result)
        return result;
    for (unsigned pass = 0; !asked.last; pass++) {
        /* Those between all passes are 51 ms: as long as a processor is seldom stopped. */
        const struct timespec pause = {.tv_nsec = 50000l << pass};
        bool again;

        result =
            bpf_register_pass(&s->iter_by_task, bpf_program__fd(s->skeleton->progs.prcb_register),
                              &s->skeleton->bss->request, &asked, asked.number, pass, &again);
        if (result)
            return prcb_fail(err, result, "the task iterator failed: %s", strerror(-result));
        answer = s->skeleton->bss->request;
        added += answer.added;
        if (!again)
            break;
        nanosleep(&pause, NULL);
    }
    answer.added = added;
    *ret = answer;
    return 0;
}

int bpf_profile_thread(struct prcb *p, pid_t tid, unsigned follow, struct prcb_error *err)
{
    struct prcb_bpf_request answer = {0};
    int result = ask(p->bpf, PRCB_REGISTER_THREAD, tid, follow, &answer, err);

    if (result)
        return result;
    if (!answer.seen)
        return mapped_not_seen("thread", tid, err);
    return answer.full ? mapped_no_room(p, err) : 0;
}

/* Threads that a thread not yet registered creates meanwhile show up in the next
 * pass; those of registered ones are followed. Where none are to be, one pass is all
 * there is to do, and further ones would go on for as long as threads are created.
 * Why none is missed: src/kernel/bpf/threads.bpf.h, "which threads". */
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
        return mapped_not_seen("process", pid, err);
    return answer.full ? mapped_no_room(p, err) : 0;
}

int bpf_profile_all(struct prcb *p, struct prcb_error *err)
{
    struct prcb_bpf_request answer = {0};
    int result = follow_new_tasks(p->bpf, err);

    if (result)
        return result;
    p->bpf->skeleton->bss->scope.all = 1;
    __atomic_thread_fence(__ATOMIC_SEQ_CST); /* (a) of "which threads" in threads.bpf.h */
    do {
        result = ask(p->bpf, PRCB_REGISTER_ALL, 0, PRCB_FOLLOW_ALL, &answer, err);
    } while (!result && answer.added);
    return result;
}

/* Registers every thread that is in the cgroup now; one that ends meanwhile is no
 * error. Until a pass finds nobody new, and nobody was moved during it, who may have gone
 * from one part of the tree to one listed before. */
static int register_cgroup(struct prcb *p, const char *path, struct prcb_error *err)
{
    struct procfs files = {.root = -1}; /* a buffer for reading lists */
    struct pid_list list = {0};
    const __u64 *moves = &p->bpf->skeleton->bss->scope.moved;
    __u64 moved;
    unsigned added;
    int result;

    do {
        moved = __atomic_load_n(moves, __ATOMIC_RELAXED);
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
    } while (!result && (added || moved != __atomic_load_n(moves, __ATOMIC_RELAXED)));
    p->bpf->moved = moved;
    pid_list_free(&list);
    procfs_close(&files);
    return result;
}

int bpf_profile_cgroup(struct prcb *p, const char *path, struct prcb_error *err)
{
    struct prcb_bpf_cgroups *cgroups = &p->bpf->skeleton->bss->scope.cgroups;
    struct statfs fs;
    struct stat st;
    __u32 bit;
    int result, is_new;

    if (stat(path, &st) || statfs(path, &fs))
        return prcb_fail(err, -errno, "cgroup %s: %s", path, strerror(errno));
    if (!(p->mapped.features & PRCB_FEATURE_CGROUP))
        return mapped_no_cgroups(path, err);
    result = bpf_follow_cgroups(p, err);
    if (!result)
        result = follow_new_tasks(p->bpf, err);
    if (result)
        return result;
    is_new = prcb_bpf_cgroups_add(cgroups, st.st_ino, fs.f_type == CGROUP2_MAGIC, &bit);
    if (is_new < 0)
        return prcb_fail(err, -EBUSY,
                         "cgroup %s: this session follows %d already, which is the limit", path,
                         PRCB_SCOPE_CGROUPS);
    __atomic_thread_fence(__ATOMIC_SEQ_CST); /* (a) of "which threads" in threads.bpf.h */
    result = register_cgroup(p, path, err);
    if (!result && cgroup_list_add(&p->bpf->cgroups, path))
        result = prcb_fail(err, -ENOMEM, "out of memory");
    if (result && is_new) {
        cgroups->used &= ~bit;
        cgroups->v2 &= ~bit;
    }
    return result;
}

/* Processes that were moved into a cgroup: their leaders are profiled already. */
int bpf_refresh(struct prcb *p, struct prcb_error *err)
{
    struct bpf_state *s = p->bpf;
    __u64 moved = __atomic_load_n(&s->skeleton->bss->scope.moved, __ATOMIC_RELAXED);

    int result = 0;

    if (moved == s->moved)
        return 0;
    for (size_t i = 0; i < s->cgroups.count && !result; i++)
        result = register_cgroup(p, s->cgroups.paths[i], err);
    /* One that was moved since then is looked for again. */
    s->moved = moved;
    return result;
}
