/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
 *
 * Which threads the daemon's clients profile. Who may profile whom is decided here, next to
 * the thread in question: what user space had found out about a thread number could be of
 * another thread by now.
 */
#ifndef PRCB_REGISTRAR_BPF_H
#define PRCB_REGISTRAR_BPF_H

struct prcb_bpf_client_scope scopes[PRCB_CLIENT_SCOPES] = {};
/* A process that connected: prcb_look fills it. */
struct prcb_bpf_peer peer = {};

/* ---- who may ---- */

static __always_inline __u64 caps_of(struct cred *cred)
{
    __u64 caps = ~0ull;

    bpf_probe_read_kernel(&caps, sizeof(caps),
                          (const char *)cred + bpf_core_field_offset(struct cred, cap_permitted));
    return caps;
}

/* What the kernel asks before a process may look into another (ptrace_may_access, read
 * mode with real credentials), without the capability that overrides it: one user and group
 * throughout, nothing to hide, and no privilege that the client lacks; in user namespaces
 * below, privileges count for nothing to the user who made them. */
static __always_inline bool may_profile(struct prcb_client_block *client, struct task_struct *task)
{
    struct cred *cred;
    struct mm_struct *mm;
    struct user_namespace *user_ns;

    if (client->all)
        return true;
    if (task->flags & (PF_KTHREAD_ | PF_WQ_WORKER_))
        return false;
    cred = task->real_cred;
    if (cred->uid.val != client->uid || cred->euid.val != client->uid ||
        cred->suid.val != client->uid || cred->gid.val != client->gid ||
        cred->egid.val != client->gid || cred->sgid.val != client->gid)
        return false;
    mm = task->mm;
    if (mm && !mm_dumpable(mm))
        return false;
    user_ns = cred->user_ns;
    if (BPF_CORE_READ(user_ns, ns.inum) == client->user_ns)
        return !(caps_of(cred) & ~client->caps);
    return BPF_CORE_READ(user_ns, parent, ns.inum) == client->user_ns &&
           BPF_CORE_READ(user_ns, owner.val) == client->uid;
}

SEC("iter/task")
int prcb_look(struct bpf_iter__task *ctx)
{
    struct task_struct *task = ctx->task;
    struct cred *cred;
    struct pid *pid;
    struct upid upid = {};
    __u32 level;

    if (!task || task->tgid != task->pid || peer.found)
        return 0;
    pid = task->thread_pid;
    if (!pid || number_in(task, config.pid_ns) != peer.pid)
        return 0;
    cred = task->real_cred;
    peer.start = task->start_boottime;
    peer.caps = caps_of(cred);
    peer.user_ns = BPF_CORE_READ(cred, user_ns, ns.inum);
    peer.uid = cred->uid.val;
    peer.gid = cred->gid.val;
    peer.euid = cred->euid.val;
    peer.egid = cred->egid.val;
    level = BPF_CORE_READ(pid, level);
    if (level < PRCB_PID_LEVELS)
        bpf_probe_read_kernel(&upid, sizeof(upid),
                              (const char *)pid + bpf_core_field_offset(struct pid, numbers) +
                                  level * bpf_core_type_size(struct upid));
    peer.pid_ns = BPF_CORE_READ(upid.ns, ns.inum);
    peer.found = 1;
    return 0;
}

/* ---- giving out accounts ---- */

/* An account of the client's that belongs to nobody; 0: there is none. Given back ones
 * first. The stack's count keeps an exchange from succeeding when the same element is on
 * top again with another below it. */
static __always_inline __u32 take_element(void *map, struct prcb_client_block *client)
{
    __u64 fresh;
    int i;

    for (i = 0; i < 8; i++) {
        __u64 top = *(volatile __u64 *)&client->free, then;
        __u32 element = (__u32)top;
        struct prcb_account_block *account;

        if (!element)
            break;
        account = bpf_map_lookup_elem(map, &element);
        if (!account)
            break;
        then = ((top >> 32) + 1) << 32 | *(volatile __u32 *)&account->next_free;
        if (__sync_val_compare_and_swap(&client->free, top, then) == top)
            return element;
    }
    if (*(volatile __u64 *)&client->head.account_used >= client->head.account_count)
        return 0;
    fresh = __sync_fetch_and_add(&client->head.account_used, 1);
    return fresh < client->head.account_count ? fresh + 1 : 0;
}

/* Makes an account nobody's. false: others kept being quicker, and nothing was done. */
static __always_inline bool free_element(void *map, struct prcb_client_block *client,
                                         struct prcb_account_block *account, __u32 element)
{
    __u8 state = account->state;
    int i;

    *(volatile __u32 *)&account->generation = 0;
    mark_free(account);
    for (i = 0; i < 8; i++) {
        __u64 top = *(volatile __u64 *)&client->free;

        *(volatile __u32 *)&account->next_free = (__u32)top;
        if (__sync_val_compare_and_swap(&client->free, top, ((top >> 32) + 1) << 32 | element) ==
            top)
            return true;
    }
    *(volatile __u8 *)&account->state = state;
    return false;
}

/* Whether a handle still means something to the client that has its number now. */
static __always_inline bool handle_lives(__u64 handle)
{
    struct prcb_client_block *client;

    if (!handle)
        return false;
    if (element_of(handle))
        return account_by(handle) != NULL;
    client = client_block(client_map(client_of(handle)));
    return client && client->epoch == handle >> 32;
}

/* The client's profile in the tag, or a free one. One caller at a time: the tag's busy
 * word, or a task that nobody else looks at yet. */
static __always_inline struct profile *profile_for(struct tag *tag, __u32 client)
{
    struct profile *ret = NULL;
    int i;

    PRCB_EACH_PROFILE
    for (i = 0; i < PROFILES; i++) {
        struct profile *profile = &tag->profiles[i];
        __u64 handle = *(volatile __u64 *)&profile->handle;
        bool lives = handle_lives(handle);

        if (lives && client_of(handle) == client)
            return profile;
        if (!lives && !ret)
            ret = profile;
    }
    return ret;
}

/* Gives the task an account of the client's. NULL: there is none free; the profile then
 * stays, for what the task creates must be counted too. The exchange orders the account's
 * stores before the handle's, and its result is used so that it stays one. */
static __always_inline struct prcb_account_block *adopt(struct task_struct *task,
                                                        struct profile *profile, void *map,
                                                        struct prcb_client_block *client,
                                                        __u32 number, bool born)
{
    struct prcb_head_block *head = head_block();
    struct prcb_account_block *account = NULL;
    __u32 element = head ? take_element(map, client) : 0, generation;

    if (element)
        account = bpf_map_lookup_elem(map, &element);
    if (!head || !account) {
        count_untracked(&client->head);
        __sync_lock_test_and_set(&profile->handle, make_handle(number, 0, client->epoch));
        return NULL;
    }
    generation = __sync_fetch_and_add(&generations, 1) + 1;
    init_account(account, task, clock_now(head), born, generation, client->pid_ns);
    if (__sync_lock_test_and_set(&profile->handle, make_handle(number, element, generation)) ==
        ~0ull)
        return NULL;
    return account;
}

/* ---- following ---- */

/* The child is not able to run yet, and everybody else leaves such tasks alone. */
static __noinline int follow_into(struct task_struct *child, __u32 number, __u32 epoch, __u32 pass)
{
    void *map = client_map(number);
    struct prcb_client_block *client = client_block(map);
    struct profile *profile;
    struct tag *tag;

    if (!client || client->epoch != epoch)
        return 0;
    tag = bpf_task_storage_get(&tags, child, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
    profile = tag ? profile_for(tag, number) : NULL;
    if (!profile) {
        count_untracked(&client->head);
        return 0;
    }
    if (profile->handle)
        return 0; /* profiled already: by its parent and by a scope */
    profile->pass = pass;
    adopt(child, profile, map, client, number, true);
    return 0;
}

SEC("tp_btf/task_newtask")
int prcb_newtask(__u64 *ctx)
{
    struct task_struct *child = (void *)ctx[0];
    __u32 way = ctx[1] & CLONE_THREAD_ ? PRCB_PASS_THREADS : PRCB_PASS_CHILDREN;
    struct tag *parent = bpf_task_storage_get(&tags, bpf_get_current_task_btf(), NULL, 0);
    int i;

    if (parent) {
        PRCB_EACH_PROFILE
        for (i = 0; i < PROFILES; i++) {
            struct profile *profile = &parent->profiles[i];
            __u64 handle = *(volatile __u64 *)&profile->handle;
            struct prcb_client_block *client;

            if (!(profile->pass & way) || !handle_lives(handle))
                continue;
            client = client_block(client_map(client_of(handle)));
            if (client)
                follow_into(child, client_of(handle), client->epoch, profile->pass);
        }
    }
    PRCB_EACH_PROFILE
    for (i = 0; i < PRCB_CLIENT_SCOPES; i++) {
        struct prcb_bpf_client_scope *scope = &scopes[i];
        struct prcb_client_block *client;

        if (!scope->client)
            continue;
        if (!scope->all && !(scope->cgroup && scope->cgroup_v2 &&
                             in_cgroup(child->cgroups->dfl_cgrp, scope->cgroup)))
            continue;
        client = client_block(client_map(scope->client));
        if (client && may_profile(client, child))
            follow_into(child, scope->client, scope->epoch, PRCB_PASS_THREADS | PRCB_PASS_CHILDREN);
    }
    return 0;
}

/* A program that the client may not look into: set-user-id, with capabilities, or not
 * readable. Its account ends here, before the program's first instruction. On the task's own
 * processor, which no switch leaves meanwhile. */
static __always_inline void end_here(struct profile *profile, struct task_struct *task)
{
    struct prcb_account_block *account = account_of(profile);
    struct prcb_head_block *head = head_block();
    __u64 now;
    __u32 seq;

    if (!account || !head)
        return;
    now = clock_now(head);
    seq = account->seq;
    prcb_seq_begin(&account->seq, seq);
    now = now > account->stamp ? now : account->stamp;
    close_running(account, task, now);
    account->stamp = now;
    account->state = PRCB_STATE_EXITED;
    account->cause = PRCB_CAUSE_NONE;
    prcb_seq_end(&account->seq, seq);
}

SEC("tp_btf/sched_process_exec")
int prcb_exec(__u64 *ctx)
{
    struct task_struct *task = (void *)ctx[0];
    struct tag *tag = bpf_task_storage_get(&tags, task, NULL, 0);
    int i;

    if (!tag)
        return 0;
    PRCB_EACH_PROFILE
    for (i = 0; i < PROFILES; i++) {
        struct profile *profile = &tag->profiles[i];
        struct prcb_client_block *client = client_block(client_map(client_of(profile->handle)));

        if (!profile->handle || !client || may_profile(client, task))
            continue;
        end_here(profile, task);
        profile->pass = 0;
        *(volatile __u64 *)&profile->handle = 0;
    }
    return 0;
}

/* ---- threads that exist already ---- */

static __always_inline bool is_requested(struct prcb_client_block *client, struct task_struct *task)
{
    switch (request.what) {
    case PRCB_REGISTER_THREAD:
        return number_in(task, client->pid_ns) == request.number;
    case PRCB_REGISTER_PROCESS:
        return number_in(task->group_leader, client->pid_ns) == request.number;
    case PRCB_REGISTER_ALL:
        return true;
    default:
        return false;
    }
}

/* The client's profile of a task, made where there is none. *ret: a new account. */
static __always_inline struct profile *join(struct task_struct *task, struct tag *tag, void *map,
                                            struct prcb_client_block *client, __u32 number,
                                            __u32 pass, struct prcb_account_block **ret)
{
    struct profile *profile = profile_for(tag, number);

    if (!profile)
        return NULL;
    if (!handle_lives(profile->handle)) {
        profile->pass = pass;
        *ret = adopt(task, profile, map, client, number, false);
    } else {
        profile->pass |= pass;
        if (!element_of(profile->handle))
            *ret = adopt(task, profile, map, client, number, false);
    }
    return profile;
}

static __noinline int register_task(struct task_struct *task)
{
    void *map = client_map(request.client);
    struct prcb_client_block *client = client_block(map);
    struct prcb_account_block *account = NULL;
    struct profile *profile;
    struct tag *tag;
    __u64 handle;

    if (!client || !is_requested(client, task))
        return 0;
    if (task->__state & TASK_NEW_) {
        request.again++;
        return 0;
    }
    request.seen++;
    if (!may_profile(client, task)) {
        request.refused++;
        return 0;
    }
    tag = bpf_task_storage_get(&tags, task, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
    if (!tag) {
        request.full++;
        return 0;
    }
    if (__sync_lock_test_and_set(&tag->busy, 1)) {
        request.again++;
        return 0;
    }
    profile = join(task, tag, map, client, request.client, request.pass, &account);
    handle = profile ? profile->handle : 0;
    __sync_lock_test_and_set(&tag->busy, 0);
    if (!profile) {
        request.crowded++;
        return 0;
    }
    if (!element_of(handle))
        request.full++;
    if (!account)
        return 0;
    /* It may have become another program while its account was made: prcb_exec saw nothing
     * to end then. The exchange that published the handle comes before this look, as the
     * kernel's change of the credentials comes before prcb_exec. */
    if (!may_profile(client, task)) {
        __sync_val_compare_and_swap(&profile->handle, handle, 0);
        request.undo_key = handle >> 32 << 32 | (element_of(handle) - 1);
        request.undo++;
        request.refused++;
        return 0;
    }
    guess_until_settled(account, task);
    request.added++;
    return 0;
}

SEC("iter/task")
int prcb_register(struct bpf_iter__task *ctx)
{
    struct task_struct *task = ctx->task;

    if (task && task->pid && !task->exit_state)
        register_task(task);
    return 0;
}

/* Takes the profiles of a client that is gone out of all tags. */
SEC("iter/task")
int prcb_sweep(struct bpf_iter__task *ctx)
{
    struct task_struct *task = ctx->task;
    struct tag *tag;
    int i;

    if (!task)
        return 0;
    tag = bpf_task_storage_get(&tags, task, NULL, 0);
    if (!tag)
        return 0;
    PRCB_EACH_PROFILE
    for (i = 0; i < PROFILES; i++) {
        __u64 handle = *(volatile __u64 *)&tag->profiles[i].handle;

        if (handle && !handle_lives(handle))
            __sync_val_compare_and_swap(&tag->profiles[i].handle, handle, 0);
    }
    return 0;
}

SEC("tp_btf/cgroup_attach_task")
int prcb_cgroup_attach(__u64 *ctx)
{
    struct cgroup *cgroup = (void *)ctx[0];
    int i;

    PRCB_EACH_PROFILE
    for (i = 0; i < PRCB_CLIENT_SCOPES; i++) {
        /* User space looks at its next refresh which threads these are. */
        if (scopes[i].client && scopes[i].cgroup && in_cgroup(cgroup, scopes[i].cgroup))
            __sync_fetch_and_add(&scopes[i].moved, 1);
    }
    return 0;
}

/* ---- giving back ---- */

/* First step. An account whose thread has ended is nobody's and is free at once. */
SEC("syscall")
int prcb_give_up(struct prcb_bpf_give_back *asked)
{
    void *map = client_map(asked->client);
    struct prcb_client_block *client = client_block(map);
    __u32 element = asked->slot + 1;
    struct prcb_account_block *account;

    if (!client || !element)
        return 1;
    account = bpf_map_lookup_elem(map, &element);
    if (!account || account->state == PRCB_STATE_FREE || account->generation != asked->generation)
        return 1;
    asked->live = account->state != PRCB_STATE_EXITED || account->seq & 1;
    /* Its handle means nothing from now on. */
    *(volatile __u32 *)&account->generation = 0;
    if (!asked->live)
        asked->live = !free_element(map, client, account, element);
    return 0;
}

/* Second step. 2: try again. */
SEC("syscall")
int prcb_free_slot(struct prcb_bpf_give_back *asked)
{
    void *map = client_map(asked->client);
    struct prcb_client_block *client = client_block(map);
    __u32 element = asked->slot + 1;
    struct prcb_account_block *account;

    if (!client || !element)
        return 1;
    account = bpf_map_lookup_elem(map, &element);
    if (!account || account->state == PRCB_STATE_FREE || account->generation)
        return 1;
    return free_element(map, client, account, element) ? 0 : 2;
}

/* All that have ended, a number of accounts at a time. */
SEC("syscall")
int prcb_free_exited(struct prcb_bpf_give_back *asked)
{
    void *map = client_map(asked->client);
    struct prcb_client_block *client = client_block(map);
    __u32 i, from = asked->from;

    if (!client)
        return 1;
    for (i = 0; i < PRCB_SWEEP_STEP; i++) {
        __u32 element = from + i + 1;
        struct prcb_account_block *account = bpf_map_lookup_elem(map, &element);

        if (!account)
            break;
        if (account->state != PRCB_STATE_EXITED || account->seq & 1)
            continue;
        if (free_element(map, client, account, element))
            asked->released++;
    }
    return 0;
}

/* The client is going: its readers are told. */
SEC("syscall")
int prcb_end_client(struct prcb_bpf_give_back *asked)
{
    struct prcb_client_block *client = client_block(client_map(asked->client));
    struct prcb_head_block *head = head_block();

    if (!client || !head)
        return 1;
    *(volatile __u64 *)&client->head.ended = clock_now(head);
    return 0;
}

#endif
